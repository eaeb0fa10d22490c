#include "observe/gpu/sample_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

// Of events only those are read that were written since, and most boards never have one: their memory comes when it is
// needed. What was made of slots stays in the file, and comes back here when somebody reads it.
void give_back_untouched(int fd, SampleBoard& board) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto* const bytes = reinterpret_cast<const char*>(&board);
    const std::size_t begin =
        (static_cast<std::size_t>(reinterpret_cast<const char*>(board.event) - bytes) + page - 1) / page * page;
    const std::size_t end = sizeof board / page * page;
    // What fails leaves memory in use, and nothing else.
    if (begin < end)
        ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                    static_cast<off_t>(end - begin));
    ::madvise(&board, sizeof board, MADV_DONTNEED);
}

}  // namespace

void SampleBoard::publish(std::size_t at, const GpuSlotData& data) {
    Slot& to = slot[at];
    to.sequence.fetch_add(1, std::memory_order_acq_rel);  // odd: being written
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::memcpy(static_cast<void*>(&to.data), &data, sizeof data);
    to.sequence.fetch_add(1, std::memory_order_release);
}

bool SampleBoard::read(std::size_t at, GpuSlotData& out) const {
    const Slot& from = slot[at];
    for (int attempt = 0; attempt < 8; ++attempt) {
        const std::uint32_t before = from.sequence.load(std::memory_order_acquire);
        if (before % 2 == 1) continue;
        std::memcpy(static_cast<void*>(&out), &from.data, sizeof out);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (from.sequence.load(std::memory_order_acquire) == before) return true;
    }
    return false;
}

Result<SharedBoard> SharedBoard::make() {
    UniqueFd fd(::memfd_create("stoker-gpu", MFD_CLOEXEC));
    if (!fd || ::ftruncate(fd.get(), sizeof(SampleBoard)) != 0)
        return Error(ErrorKind::exhausted, fmt::format("no shared memory for samples: {}", std::strerror(errno)));
    void* at = ::mmap(nullptr, sizeof(SampleBoard), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED)
        return Error(ErrorKind::exhausted, fmt::format("no shared memory for samples: {}", std::strerror(errno)));
    auto* const board = new (at) SampleBoard;
    give_back_untouched(fd.get(), *board);
    return SharedBoard(std::move(fd), board);
}

Result<SharedBoard> SharedBoard::open(int fd) {
    UniqueFd own(fd);
    struct ::stat status = {};
    if (::fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) < sizeof(SampleBoard))
        return Error(ErrorKind::invalid, fmt::format("descriptor {} is no memory of an agent", fd));
    void* at = ::mmap(nullptr, sizeof(SampleBoard), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return Error(ErrorKind::invalid, fmt::format("descriptor {} cannot be mapped: {}", fd, std::strerror(errno)));
    auto* const board = static_cast<SampleBoard*>(at);
    if (std::memcmp(board->magic, "STKGPU02", sizeof board->magic) != 0)
        return Error(ErrorKind::invalid, fmt::format("descriptor {} is of another version of stoker", fd));
    return SharedBoard(std::move(own), board);
}

SharedBoard::SharedBoard(SharedBoard&& other) noexcept
    : fd_(std::move(other.fd_)), board_(std::exchange(other.board_, nullptr)) {}

SharedBoard& SharedBoard::operator=(SharedBoard&& other) noexcept {
    if (this == &other) return *this;
    if (board_) ::munmap(board_, sizeof(SampleBoard));
    fd_ = std::move(other.fd_);
    board_ = std::exchange(other.board_, nullptr);
    return *this;
}

SharedBoard::~SharedBoard() {
    if (board_) ::munmap(board_, sizeof(SampleBoard));
}

std::string plain_pci(std::string_view text) {
    std::string plain = lower(trim(text));
    if (plain.starts_with("pci:")) plain.erase(0, 4);
    if (const std::size_t colon = plain.find(':'); colon != std::string::npos && colon > 4) plain.erase(0, colon - 4);
    if (!plain.empty() && plain.find('.') == std::string::npos) plain += ".0";
    return plain;
}

void set_text(char* to, std::size_t size, std::string_view text) {
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), length);
    std::memset(to + length, 0, size - length);
}

}  // namespace stoker
