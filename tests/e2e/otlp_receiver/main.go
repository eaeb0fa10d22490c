// The OTLP receiver of the OpenTelemetry Collector on a port of its own: says where it listens, then one line of JSON for each span.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	fail(err)
	address := free.Addr().String()
	fail(free.Close())
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	http := config.Protocols.HTTP.GetOrInsertDefault()
	http.ServerConfig.NetAddr.Endpoint = address
	out := json.NewEncoder(os.Stdout)
	spans, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					fail(out.Encode(map[string]any{
						"trace": span.TraceID().String(), "span": span.SpanID().String(), "parent": span.ParentSpanID().String(),
						"name": span.Name(), "kind": span.Kind().String(), "status": span.Status().Code().String(),
						"nanoseconds": span.EndTimestamp() - span.StartTimestamp(),
						"attributes":  span.Attributes().AsRaw(), "resource": resource.Resource().Attributes().AsRaw(),
					}))
				}
			}
		}
		return nil
	})
	fail(err)
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(), BuildInfo: component.NewDefaultBuildInfo()}
	traces, err := factory.CreateTraces(context.Background(), settings, config, spans)
	fail(err)
	fail(traces.Start(context.Background(), componenttest.NewNopHost()))
	fmt.Printf("listening http://%s\n", address)
	select {}
}
