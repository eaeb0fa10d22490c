// A file of the wrong kind is a file that no rule reads.
#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

bool is_kind(std::string_view path, std::string_view text, Kind kind) {
    return classify(path, text).has(kind);
}

TEST(Classify, TellsTemplatesFromManifestsThatPrintWithOne) {
    EXPECT_TRUE(is_kind("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {{ .Values.x }}\n", Kind::helm));
    EXPECT_TRUE(is_kind("a.yaml", "{{- if .Values.on }}\napiVersion: v1\nkind: Pod\n{{- end }}\n", Kind::helm));
    EXPECT_TRUE(is_kind("chart/templates/a.yaml", "apiVersion: v1\nkind: Pod\nx: \"{{ .Values.x }}\"\n", Kind::helm));
    EXPECT_TRUE(is_kind("a.yaml",
                        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - args: [-c, \"docker ps --format "
                        "'{{.Names}}'\"]\n",
                        Kind::k8s));
}

TEST(Classify, KnowsTheFilesOfOperators) {
    EXPECT_TRUE(is_kind("c.yml", "version: '3'\nservices:\n  a:\n    image: x\n", Kind::compose));
    EXPECT_TRUE(is_kind("r.yaml", "groups:\n- rules:\n  - alert: A\n    expr: up\n", Kind::prometheus));
    EXPECT_TRUE(is_kind("-", "apiVersion: v1\nkind: Pod\n", Kind::k8s));
    EXPECT_TRUE(classify("notes.yaml", "a: b\n").empty());
    EXPECT_TRUE(
        is_kind("g.yaml", "models:\n- {name: a, upstreams: [x]}\nkeys:\n- {name: b, sha256: c}\n", Kind::stoker));
    EXPECT_TRUE(is_kind("s.yaml", "engine: {kind: slurm}\nadmission:\n- {name: a}\n", Kind::stoker));
    // Others have models and keys, too, and a rate.
    EXPECT_TRUE(classify("litellm.yaml", "models:\n- name: a\nkeys:\n- b\n").empty());
    EXPECT_TRUE(classify("x.yaml", "rate: 3\n").empty());
}

// subnet.tf.template of cluster-toolkit: filled in by a program before Terraform sees it.
TEST(Classify, ATemplateOfAnotherLanguageIsNoBrokenFile) {
    EXPECT_TRUE(is_kind("subnet.tf.template", "output \"a-{ID}\" {\n  value = x.a_{ID}.name\n}\n", Kind::helm));
}

}  // namespace
}  // namespace stoker::lint
