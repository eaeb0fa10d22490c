#include "io/small_process.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace stoker {
namespace {

int give_back_of_first(dl_phdr_info* info, std::size_t, void*) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
        const std::uintptr_t begin = (info->dlpi_addr + part.p_vaddr + page - 1) / page * page;
        const std::uintptr_t end = (info->dlpi_addr + part.p_vaddr + part.p_filesz) / page * page;
        // An error means that they stay, and that is all it means.
        if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 1;  // the program comes first, and libraries are others' as well
}

}  // namespace

void give_back_startup_pages() {
    ::dl_iterate_phdr(give_back_of_first, nullptr);
    ::malloc_trim(0);
}

void share_heaps(int most) {
    ::mallopt(M_ARENA_MAX, most);
}

}  // namespace stoker
