// Modern Bicep must be read: 17 % of public files fail the only public grammar, and a file that is not read has no
// findings.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

std::unique_ptr<File> bicep(std::string text) {
    return read_file("main.bicep", std::move(text), ReadOptions{});
}
std::string told(const File& file) {
    std::string text;
    for (const ReadProblem& problem : file.problems)
        text += std::to_string(file.source().place(problem.span.begin).line) + ": " + problem.message + "\n";
    return text;
}

TEST(ReadBicep, ReadsTheWholeLanguage) {
    const auto file = bicep(R"(#disable-next-line no-unused-params
targetScope = 'resourceGroup'
metadata name = 'x'
import { kind, other as o } from 'types.bicep'
import * as all from 'br/public:a/b:1.0'
type size = 'small' | 'large'
type shape = {
  @description('a, b')
  name: string
  count: int?
  *: string
}
@description('it\'s')
@allowed([
  'a'
  'b' // why
])
param one string = 'a'
param two 'x' | 'y' | null
param three { a: int, b: string[] }?
@secure()
param four string
func twice(x string, y int) string => '${x}${x}'
var five = [for i in range(0, 3): 'n${i}']
var six = {
  ...three
  'a-b': one == 'a' ? 1 : 2
  c: three.?a ?? 4
  d: five[?0]
  e: map(five, x => toUpper(x))
  f: reduce(five, '', (x, y) => '${x}${y}')
  g: !empty(one)
    && two != 'x'
  h: one! == 'b'
    ? 'yes'
    : 'no'
}
var seven = '''
raw ${not} a hole
'''
resource net 'Microsoft.Network/virtualNetworks@2024-05-01' existing = {
  name: 'net'
  resource sub 'subnets' existing = {
    name: 'sub'
  }
}
resource many 'Microsoft.Compute/disks@2024-03-02' = [for (d, i) in six.list: if (d.on) {
  name: 'disk-${i}'
  scope: net::sub
}]
resource maybe 'Microsoft.Compute/disks@2024-03-02' = if (one == 'a') {
  name: 'x'
}
module part './part.bicep' = {
  name: 'part'
  params: {
    a: az.resourceId('x', net.id)
  }
}
output out string = part.outputs.a
)");
    EXPECT_EQ(told(*file), "");
}

// As azhop.bicep writes its calls.
TEST(ReadBicep, BlanksMayStandBeforeArguments) {
    const auto file = bicep("var a = union ({ b: 1 }, { c: 2 })\noutput d int = length (map (['x'], v => v))\n");
    EXPECT_EQ(told(*file), "");
}

TEST(ReadBicep, FollowsParametersAndVariables) {
    const auto file = bicep(
        "param size string = 'Standard_NC6'\nvar sizes = {\n  gpu: size\n}\nvar a = '${sizes.gpu}_Promo'\n"
        "var b = sizes[?'gpu']\nvar c = length([for i in range(0, 4): i])\nvar d = toLower('ABC')\n");
    ASSERT_EQ(told(*file), "");
    std::vector<std::string> values;
    for (const Node& statement : children(file->tree.roots.at(0)))
        if (statement.labels[0].size() == 1) values.emplace_back(statement.find("value")->text);
    EXPECT_EQ(values, (std::vector<std::string>{"Standard_NC6_Promo", "Standard_NC6", "4", "abc"}));
}

TEST(ReadBicep, GoesOnBehindABrokenStatement) {
    const auto file = bicep("param a string = }\nvar b = 'open\nvar c = 3\n");
    EXPECT_EQ(file->problems.size(), 2u) << told(*file);
    EXPECT_EQ(file->tree.roots.at(0)->last->find("value")->text, "3");
}

TEST(ReadBicep, HoldsItsBounds) {
    for (const char open : {'(', '[', '{', '!'}) {
        const auto file = bicep("var a = " + std::string(100'000, open) + "\n");
        EXPECT_FALSE(file->problems.empty());
    }
}

// ...defaults: what stands behind it counts, and before it does not.
TEST(ReadBicep, SpreadsAreMembersOfTheirObjects) {
    const std::string head =
        "var defaults = {\n  nodeTaints: ['sku=gpu:NoSchedule']\n  enableAutoScaling: true\n  minCount: 0\n  maxCount: "
        "4\n}\n"
        "resource p 'Microsoft.ContainerService/managedClusters/agentPools@2025-05-01' = {\n  name: 'c/p'\n  "
        "properties: {\n";
    const auto pool = [&](const std::string& body) {
        return CheckedTree{
            {{"main.bicep", head + body + "    vmSize: 'Standard_NC24ads_A100_v4'\n    mode: 'User'\n  }\n}\n"}}, {}};
    };
    EXPECT_EQ(pool("    ...defaults\n").places("NPL001"), Places{});
    EXPECT_EQ(pool("    ...defaults\n").places("NPL003"), Places{});
    EXPECT_EQ(pool("    ...defaults\n    minCount: 4\n").places("NPL003").size(), 1u);
    EXPECT_EQ(pool("    minCount: 4\n    ...defaults\n").places("NPL003"), Places{});
}

}  // namespace
}  // namespace stoker::lint
