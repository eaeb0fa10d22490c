// A Terraform value that is followed wrongly is a false finding in somebody's build; one that is not followed is a size
// that nobody sees.
#include <gtest/gtest.h>

#include <algorithm>

#include "lint/hcl/expression.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

struct Neighbours {
    std::vector<std::pair<std::string, std::string>> files;
    ReadOptions options() const {
        ReadOptions made;
        made.neighbour = [this](const std::string& path) -> std::optional<std::string> {
            for (const auto& [name, text] : files)
                if (name == path) return text;
            return std::nullopt;
        };
        return made;
    }
};
std::unique_ptr<File> hcl(std::string text, const ReadOptions& options = {}) {
    return read_file("main.tf", std::move(text), options);
}
// The attribute `v` of the last block.
const Node& last_v(const File& file) {
    const Node* value = file.tree.roots.at(0)->last->find("v");
    return *value;
}

TEST(ReadHcl, ReadsBlocksLabelsAndAttributes) {
    const auto file = hcl("# head\nresource \"a_b\" \"c\" {\n  name = \"x\" // why\n  inner {\n    n = 2\n  }\n}\n");
    EXPECT_TRUE(file->problems.empty());
    const Node& block = *file->tree.roots.at(0)->first;
    EXPECT_EQ(block.key, "resource");
    ASSERT_EQ(block.labels.size(), 2u);
    EXPECT_EQ(block.labels[1], "c");
    EXPECT_EQ(file->source().text(block.find("name")->span), "\"x\"");
    EXPECT_EQ(block.at({"inner", "n"})->text, "2");
    EXPECT_EQ(file->comments.size(), 2u);
}

// terraform fmt leaves blanks between a function and its arguments as they are.
TEST(ReadHcl, TakesACallAsAKey) {
    const auto file =
        hcl("locals {\n  v = {\n    sensitive(data.x.y[\"u\"]) : sensitive(bcrypt(data.x.y[\"p\"]))\n  }\n}\n");
    EXPECT_TRUE(file->problems.empty());
}

TEST(ReadHcl, IsNoHclBeforeItIsRendered) {
    const auto file =
        read_file("template.tfvars", "hubs = {\n{% for hub in hubs %}\n  {{ hub }} = 1\n{% endfor %}\n}\n");
    ASSERT_FALSE(file->problems.empty());
    EXPECT_EQ(file->problems[0].rule, "SYN003");
}

TEST(ReadHcl, BlanksMayStandBeforeArguments) {
    const auto file = hcl("locals {\n  v = lookup (merge\t({ a = \"x\" }, {}), \"a\", \"\")\n}\n");
    EXPECT_TRUE(file->problems.empty());
    EXPECT_EQ(last_v(*file).text, "x");
}

// Each right side with what it comes to; "?" is unknown.
TEST(ReadHcl, FollowsWhatIsWritten) {
    const char* head =
        "variable \"size\" {\n  default = \"Standard_NC6\"\n}\nvariable \"n\" {\n  default = 3\n}\nvariable \"open\" "
        "{}\n"
        "variable \"loop\" {\n  default = var.loop\n}\n"
        "locals {\n  on    = true\n  pools = {\n    gpu = { size = var.size }\n  }\n  list = [\"a\", \"b\"]\n}\n";
    const std::pair<const char*, const char*> cases[] = {
        {"var.size", "Standard_NC6"},
        {"var.open", "?"},
        {"var.loop", "?"},
        {"\"${var.size}_Promo\"", "Standard_NC6_Promo"},
        {"\"${var.size}\"", "Standard_NC6"},
        {"\"a-${var.open}\"", "?"},
        {"local.pools[\"gpu\"].size", "Standard_NC6"},
        {"local.pools.gpu.size", "Standard_NC6"},
        {"local.list[1]", "b"},
        {"local.on ? 1 : 0", "1"},
        {"!local.on ? 1 : 0", "0"},
        {"var.open == null ? 1 : 0", "?"},
        {"var.n * 2 + 1", "7"},
        {"-var.n", "-3"},
        {"var.n >= 3 && local.on", "true"},
        {"local.on || var.open", "true"},
        {"format(\"%s-%02d\", var.size, var.n)", "Standard_NC6-03"},
        {"lower(var.size)", "standard_nc6"},
        {"join(\",\", local.list)", "a,b"},
        {"join(\",\", [for x in local.list : upper(x) if x != \"a\"])", "B"},
        {"length(concat(local.list, [\"c\"]))", "3"},
        {"lookup(local.pools.gpu, \"size\", \"x\")", "Standard_NC6"},
        {"lookup(local.pools.gpu, \"none\", \"x\")", "x"},
        {"coalesce(\"\", var.size)", "Standard_NC6"},
        {"merge(local.pools.gpu, { size = \"y\" }).size", "y"},
        {"try(local.pools.gpu.size, \"z\")", "Standard_NC6"},
        {"{ for k, v in local.pools : k => v.size }[\"gpu\"]", "Standard_NC6"},
        {"azurerm_subnet.x[0].id", "?"},
        {"join(\"-\", local.list[*])", "a-b"},
        {"trimprefix(\"vm-x\", \"vm-\")", "x"},
        {"zipmap([\"k\"], [\"v\"]).k", "v"},
        {"try(local.pools.cpu.size, \"z\")", "z"},
        {"try(local.unknown.size, \"z\")", "?"},
        {"cidrsubnet(\"172.16.0.0/12\", 4, 1)", "172.17.0.0/16"},
        {"cidrsubnet(\"172.16.0.0/12\", 40, 1)", "?"},
        {"values({ a = \"x\" })[0]", "x"},
        {"provider::x::f(1)", "?"},
    };
    for (const auto& [right, wanted] : cases) {
        const auto file = hcl(std::string(head) + "resource \"t\" \"r\" {\n  v = " + right + "\n}\n");
        EXPECT_TRUE(file->problems.empty())
            << right << ": " << (file->problems.empty() ? "" : file->problems[0].message);
        const Node& value = last_v(*file);
        EXPECT_EQ(value.known ? std::string(value.text) : "?", wanted) << right;
    }
}

TEST(ReadHcl, RemembersWhereADefaultWasWritten) {
    const auto file = hcl("variable \"s\" {\n  default = \"abc\"\n}\nresource \"t\" \"r\" {\n  v = var.s\n}\n");
    const Value value = Value::of(&last_v(*file));
    EXPECT_EQ(file->source().text(value.span), "\"abc\"");
    EXPECT_EQ(file->source().text(value.use), "var.s");
}

TEST(ReadHcl, AsksTheFilesBesideIt) {
    const Neighbours beside{
        {{"variables.tf", "variable \"s\" {\n  default = \"from variables\"\n}\nvariable \"t\" {}\n"},
         {"terraform.tfvars", "t = \"from tfvars\"\n"}}};
    const auto file = hcl("resource \"x\" \"r\" {\n  v = \"${var.s}, ${var.t}\"\n}\n", beside.options());
    EXPECT_EQ(last_v(*file).text, "from variables, from tfvars");
    EXPECT_EQ(file->neighbours.size(), 2u);
}

TEST(ReadHcl, SpreadsAResourceOverAMap) {
    const auto file =
        hcl("resource \"t\" \"r\" {\n  for_each = { a = \"x\", b = \"y\" }\n  v        = "
            "\"${each.key}-${each.value}\"\n}\n");
    std::vector<std::string> values;
    for (const Node& block : children(file->tree.roots.at(0)))
        if (block.key == "resource") values.emplace_back(block.find("v")->text);
    EXPECT_EQ(values, (std::vector<std::string>{"a-x", "b-y"}));
}

TEST(ReadHcl, ReadsHeredocs) {
    const auto file = hcl("resource \"t\" \"r\" {\n  v = <<-EOT\n    #!/bin/sh\n      echo hi\n    EOT\n  w = 1\n}\n");
    EXPECT_TRUE(file->problems.empty());
    EXPECT_EQ(last_v(*file).text, "#!/bin/sh\n  echo hi\n");
    const Inlay inlay = inlay_of(last_v(*file), Dialect::hcl);
    EXPECT_EQ(inlay.text, last_v(*file).text);
    for (const Piece& piece : inlay.pieces)  // every byte stands where it says
        EXPECT_EQ(file->source().text(piece.host), inlay.text.substr(piece.guest, piece.length));
}

TEST(ReadHcl, GoesOnBehindABrokenBlock) {
    const auto file = hcl("resource \"a\" \"b\" {\n  x = = 1\n}\nresource \"c\" \"d\" {\n  v = 2\n}\n");
    ASSERT_EQ(file->problems.size(), 1u);
    EXPECT_EQ(file->problems[0].rule, "SYN001");
    EXPECT_EQ(file->source().place(file->problems[0].span.begin).line, 2u);
    EXPECT_EQ(last_v(*file).text, "2");
}

TEST(ReadHcl, HoldsItsBounds) {
    for (const std::string& bomb :
         {std::string(100'000, '('), std::string(100'000, '['), std::string(100'000, '!'), std::string(100'000, '{')}) {
        const auto file = hcl("resource \"a\" \"b\" {\n  v = " + bomb + "\n}\n");
        EXPECT_FALSE(file->problems.empty());
    }
    // Doubling texts end at the bound instead of at the end of memory.
    std::string text = "locals {\n  a0 = \"xxxxxxxxxxxxxxxx\"\n";
    for (int i = 1; i < 40; ++i) {
        const std::string before = "${local.a" + std::to_string(i - 1) + "}";
        text += "  a" + std::to_string(i) + " = \"" + before + before + "\"\n";
    }
    const auto file = hcl(text + "}\n");
    EXPECT_FALSE(file->tree.roots.at(0)->first->find("a39")->known);
}

TEST(DecodeBase64, TakesTextAndRefusesOthers) {
    EXPECT_EQ(decode_base64("I2Nsb3VkLWNvbmZpZwpwYWNrYWdlczogW10K"), "#cloud-config\npackages: []\n");
    EXPECT_EQ(decode_base64("not base64 at all!"), "");
    EXPECT_EQ(decode_base64("c2hvcnQ="), "");  // a word that happens to be made of its letters
}

// Whoever sets count = 0 has no such machine; a switch that is off by default is there to be switched on.
TEST(ReadHcl, LeavesOutWhatIsNotMade) {
    const auto made = [](std::string head, std::string line, const ReadOptions& options = {}) {
        const auto file = hcl(
            head + "resource \"azurerm_linux_virtual_machine\" \"a\" {\n  size = \"Standard_NC6\"\n  " + line + "\n}\n",
            options);
        EXPECT_TRUE(file->problems.empty());
        return std::any_of(file->resources.begin(), file->resources.end(),
                           [](const Resource& resource) { return resource.type == ResourceType::vm; });
    };
    EXPECT_FALSE(made("", "count = 0"));
    EXPECT_FALSE(made("locals {\n  on = false\n}\n", "count = local.on ? 1 : 0"));
    EXPECT_FALSE(made("", "for_each = {}"));
    EXPECT_FALSE(made("", "for_each = toset([])"));
    EXPECT_TRUE(made("", "count = 1"));
    const std::string off = "variable \"on\" {\n  default = false\n}\n";
    EXPECT_TRUE(made(off, "count = var.on ? 1 : 0"));
    EXPECT_TRUE(made("variable \"on\" {}\n", "count = var.on ? 1 : 0"));
    const Neighbours values{{{"terraform.tfvars", "on = false\n"}}};
    EXPECT_FALSE(made(off, "count = var.on ? 1 : 0", values.options()));
}

TEST(ReadHcl, DecodesFilesBesideAndTextsWithin) {
    const Neighbours beside{{{"pools.json", "{\"gpu\": {\"size\": \"Standard_NC6\"}}"},
                             {"pools.yaml", "gpu:\n  size: Standard_NC12\n"},
                             {"init.tftpl", "#cloud-config\nhostname: ${name}\nx: ${other}\n"}}};
    const std::pair<const char*, const char*> cases[] = {
        {"jsondecode(file(\"${path.module}/pools.json\")).gpu.size", "Standard_NC6"},
        {"yamldecode(file(\"./pools.yaml\")).gpu.size", "Standard_NC12"},
        {"yamldecode(\"a: [b]\").a[0]", "b"},
        {"jsondecode(\"{\\\"a\\\": 1}\").a", "1"},
        {"templatefile(\"init.tftpl\", { name = \"n\" })", "#cloud-config\nhostname: n\nx: ${other}\n"},
    };
    for (const auto& [right, expected] : cases) {
        const auto file =
            hcl(std::string("# var.\nresource \"x\" \"y\" {\n  v = ") + right + "\n}\n", beside.options());
        EXPECT_TRUE(file->problems.empty()) << right;
        EXPECT_TRUE(last_v(*file).known) << right;
        EXPECT_EQ(last_v(*file).text, expected) << right;
    }
    const auto file =
        hcl("resource \"azurerm_linux_virtual_machine\" \"a\" {\n  size = "
            "jsondecode(file(\"pools.json\")).gpu.size\n}\n",
            beside.options());
    ASSERT_EQ(file->resources.size(), 1u);
    const Value& size = file->resources[0].get(Attr::size);
    EXPECT_EQ(size.source->path(), "pools.json");
    EXPECT_EQ(size.source->text(size.span), "\"Standard_NC6\"");
}

TEST(ReadHcl, ReadsTheJsonSyntaxWithItsPlaces) {
    const auto file = read_file("main.tf.json", R"({
  "variable": {"size": {"default": "Standard_NC6"}},
  "locals": {"n": 2},
  "resource": {
    "azurerm_linux_virtual_machine": {
      "a": {"size": "${var.size}", "count": "${local.n + 1}", "name": "x-${var.open}"}
    },
    "azurerm_kubernetes_cluster": {
      "k": {"default_node_pool": [{"name": "system", "vm_size": "Standard_D4s_v5"}]}
    }
  }
})",
                                ReadOptions{});
    ASSERT_TRUE(file && file->problems.empty());
    const Resource *machine = nullptr, *pool = nullptr;
    for (const Resource& resource : file->resources) {
        if (resource.type == ResourceType::vm) machine = &resource;
        if (resource.type == ResourceType::node_pool) pool = &resource;
    }
    ASSERT_TRUE(machine && pool);
    EXPECT_EQ(machine->address, "tf:azurerm_linux_virtual_machine.a");
    EXPECT_EQ(machine->get(Attr::size).text, "Standard_NC6");
    EXPECT_EQ(file->source().place(machine->get(Attr::size).span.begin).line, 2u);
    EXPECT_EQ(file->source().place(machine->get(Attr::size).use.begin).line, 6u);
    EXPECT_EQ(machine->get(Attr::count).text, "3");
    EXPECT_TRUE(machine->get(Attr::name).unknown());
    EXPECT_EQ(pool->address, "tf:azurerm_kubernetes_cluster.k#default_node_pool/system");
    EXPECT_EQ(read_file("a.tf.json", "{\"resource\": [", ReadOptions{})->problems.size(), 1u);
}

}  // namespace
}  // namespace stoker::lint
