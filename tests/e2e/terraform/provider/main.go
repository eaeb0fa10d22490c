// A provider of Terraform that has the published schemas of a real one and does nothing: what `terraform validate` asks
// of a provider before it would reach a cloud.
//
//	terraform-provider-NAME   with STOKER_SCHEMAS=schemas.json; Terraform starts it
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

type block struct {
	Nesting    string
	Min, Max   int64
	Attributes map[string][2]string
	Blocks     map[string]block
}

type schemas struct {
	Provider  block
	Resources map[string]block
	Data      map[string]block
}

func typeOf(name string) tftypes.Type {
	switch name {
	case "string":
		return tftypes.String
	case "number":
		return tftypes.Number
	case "bool":
		return tftypes.Bool
	case "stringList":
		return tftypes.List{ElementType: tftypes.String}
	case "numberList":
		return tftypes.List{ElementType: tftypes.Number}
	case "stringMap":
		return tftypes.Map{ElementType: tftypes.String}
	}
	return tftypes.DynamicPseudoType
}

func (b block) schema() *tfprotov5.SchemaBlock {
	out := &tfprotov5.SchemaBlock{}
	for name, words := range b.Attributes {
		out.Attributes = append(out.Attributes, &tfprotov5.SchemaAttribute{Name: name, Type: typeOf(words[0]),
			Required: words[1] == "required", Optional: strings.HasPrefix(words[1], "optional"), Computed: strings.HasSuffix(words[1], "computed")})
	}
	for name, inner := range b.Blocks {
		nesting := tfprotov5.SchemaNestedBlockNestingModeList
		if inner.Nesting == "set" {
			nesting = tfprotov5.SchemaNestedBlockNestingModeSet
		}
		out.BlockTypes = append(out.BlockTypes, &tfprotov5.SchemaNestedBlock{TypeName: name, Block: inner.schema(), Nesting: nesting,
			MinItems: inner.Min, MaxItems: inner.Max})
	}
	return out
}

type provider struct {
	tfprotov5.ProviderServer // what validate never asks for
	schemas schemas
}

func (p provider) GetMetadata(context.Context, *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	return &tfprotov5.GetMetadataResponse{}, nil
}

func (p provider) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	all := func(blocks map[string]block) map[string]*tfprotov5.Schema {
		out := map[string]*tfprotov5.Schema{}
		for name, each := range blocks {
			out[name] = &tfprotov5.Schema{Block: each.schema()}
		}
		return out
	}
	return &tfprotov5.GetProviderSchemaResponse{Provider: &tfprotov5.Schema{Block: p.schemas.Provider.schema()},
		ResourceSchemas: all(p.schemas.Resources), DataSourceSchemas: all(p.schemas.Data)}, nil
}

func (p provider) PrepareProviderConfig(_ context.Context, asked *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: asked.Config}, nil
}

func (p provider) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

func (p provider) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

func (p provider) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

func main() {
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "terraform-provider-")
	var all map[string]json.RawMessage
	var mine schemas
	text, err := os.ReadFile(os.Getenv("STOKER_SCHEMAS"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err == nil {
		err = json.Unmarshal(all[name], &mine)
	}
	if err == nil {
		err = tf5server.Serve("registry.terraform.io/hashicorp/"+name, func() tfprotov5.ProviderServer { return provider{schemas: mine} })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
