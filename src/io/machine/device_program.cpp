#include "io/machine/device_program.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "base/text.h"
#include "io/process.h"

namespace stoker {
namespace {

using Program = std::vector<bpf_insn>;

bpf_insn instruction(int code, int to, int from, int offset, std::int32_t value) {
    bpf_insn made{};
    made.code = static_cast<std::uint8_t>(code);
    made.dst_reg = static_cast<std::uint8_t>(to & 0xf);
    made.src_reg = static_cast<std::uint8_t>(from & 0xf);
    made.off = static_cast<std::int16_t>(offset);
    made.imm = value;
    return made;
}
bpf_insn load_word(int to, int from, int offset) {
    return instruction(BPF_LDX | BPF_W | BPF_MEM, to, from, offset, 0);
}
bpf_insn with_value(int operation, int to, std::int32_t value) {
    return instruction(BPF_ALU | operation | BPF_K, to, 0, 0, value);
}
bpf_insn unless_equal(int what, std::int32_t value) {  // the jump is set when the length of the rule is known
    return instruction(BPF_JMP | BPF_JNE | BPF_K, what, 0, 0, value);
}

constexpr int kResult = BPF_REG_0, kContext = BPF_REG_1, kAccess = BPF_REG_2, kType = BPF_REG_3, kMajor = BPF_REG_4,
              kMinor = BPF_REG_5, kRest = BPF_REG_6;

// "136" or "*", which is nothing.
bool number_or_all(std::string_view text, std::int32_t& number, bool& all) {
    all = text == "*";
    if (all) return true;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    return code == std::errc() && end == text.data() + text.size() && number >= 0;
}

// Allows what the rule says and leaves; else goes on behind it.
bool add_rule(std::string_view rule, Program& program) {
    const auto words = split_words(rule);
    if (words.size() != 3 || (words[0] != "c" && words[0] != "b")) return false;
    const auto numbers = split(words[1], ':');
    std::int32_t major = 0, minor = 0;
    bool any_major = false, any_minor = false;
    if (numbers.size() != 2 || !number_or_all(numbers[0], major, any_major) ||
        !number_or_all(numbers[1], minor, any_minor))
        return false;
    std::int32_t access = 0;
    for (const char c : words[2])
        access |= c == 'r' ? BPF_DEVCG_ACC_READ : c == 'w' ? BPF_DEVCG_ACC_WRITE : c == 'm' ? BPF_DEVCG_ACC_MKNOD : 0;
    const std::size_t begin = program.size();
    program.push_back(unless_equal(kType, words[0] == "c" ? BPF_DEVCG_DEV_CHAR : BPF_DEVCG_DEV_BLOCK));
    if (!any_major) program.push_back(unless_equal(kMajor, major));
    if (!any_minor) program.push_back(unless_equal(kMinor, minor));
    program.push_back(instruction(BPF_ALU | BPF_MOV | BPF_X, kRest, kAccess, 0, 0));
    program.push_back(with_value(BPF_AND, kRest, ~access));
    program.push_back(unless_equal(kRest, 0));
    program.push_back(with_value(BPF_MOV, kResult, 1));
    program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
    for (std::size_t i = begin; i < program.size(); ++i)
        if (program[i].code == (BPF_JMP | BPF_JNE | BPF_K))
            program[i].off = static_cast<std::int16_t>(program.size() - i - 1);
    return true;
}

long bpf(int command, bpf_attr& attributes) {
    return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

Error no_program(const char* what) {
    return Error(errno == EPERM || errno == EACCES ? ErrorKind::denied : ErrorKind::unsupported,
                 std::string("cannot ") + what + " a device program (BPF): " + std::strerror(errno));
}

Result<UniqueFd> load_program(const std::vector<std::string>& rules) {
    // The first word of the context: access in the upper half, type in the lower.
    Program program = {load_word(kAccess, kContext, offsetof(bpf_cgroup_dev_ctx, access_type)),
                       instruction(BPF_ALU | BPF_MOV | BPF_X, kType, kAccess, 0, 0),
                       with_value(BPF_AND, kType, 0xffff),
                       with_value(BPF_RSH, kAccess, 16),
                       load_word(kMajor, kContext, offsetof(bpf_cgroup_dev_ctx, major)),
                       load_word(kMinor, kContext, offsetof(bpf_cgroup_dev_ctx, minor))};
    for (const std::string& rule : rules)
        if (!add_rule(rule, program)) return Error(ErrorKind::invalid, "not a device rule: " + printable(rule));
    program.push_back(with_value(BPF_MOV, kResult, 0));
    program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
    bpf_attr attributes{};
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
    attributes.insns = reinterpret_cast<std::uintptr_t>(program.data());
    attributes.license = reinterpret_cast<std::uintptr_t>("Apache-2.0");
    UniqueFd loaded(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
    if (!loaded) return no_program("load");
    return loaded;
}

}  // namespace

Status attach_device_program(const std::string& group, const std::vector<std::string>& rules) {
    TRY(const UniqueFd program, load_program(rules));
    const UniqueFd folder(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return no_program("find the group for");
    bpf_attr attributes{};
    attributes.target_fd = static_cast<std::uint32_t>(folder.get());
    attributes.attach_bpf_fd = static_cast<std::uint32_t>(program.get());
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;  // a container runtime adds its own below
    if (bpf(BPF_PROG_ATTACH, attributes) != 0) return no_program("attach");
    return done();
}

bool device_programs_work() {
    return load_program({"c 1:3 rwm"}).ok();
}

}  // namespace stoker
