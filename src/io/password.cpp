#include "io/password.h"

#include <argon2.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <mutex>

#include <fmt/format.h>

namespace stoker {
namespace {

// RFC 9106, section 4: 3 passes over 64 MiB, the choice for where memory is scarce; one lane, since others wait for
// the processor too.
constexpr std::uint32_t kPasses = 3, kMemoryKib = 64 * 1024, kLanes = 1;
constexpr std::size_t kSaltBytes = 16, kHashBytes = 32;

// One at a time: whoever sends many guesses waits for himself, and memory stays bounded.
std::mutex& one_at_a_time() {
    static std::mutex mutex;
    return mutex;
}

Result<std::string> made(std::string_view password) {
    std::array<unsigned char, kSaltBytes> salt{};
    if (RAND_bytes(salt.data(), static_cast<int>(salt.size())) != 1)
        return Error(ErrorKind::unavailable, "the system gives no random numbers");
    std::string hash(argon2_encodedlen(kPasses, kMemoryKib, kLanes, kSaltBytes, kHashBytes, Argon2_id), '\0');
    const std::lock_guard lock(one_at_a_time());
    const int code = argon2id_hash_encoded(kPasses, kMemoryKib, kLanes, password.data(), password.size(), salt.data(),
                                           salt.size(), kHashBytes, hash.data(), hash.size());
    if (code != ARGON2_OK)
        return Error(ErrorKind::unavailable,
                     fmt::format("the password could not be hashed: {}", argon2_error_message(code)), {},
                     fmt::format("it takes {} MiB of memory", kMemoryKib / 1024));
    hash.resize(hash.find('\0'));
    return hash;
}

}  // namespace

Status check_password(std::string_view password) {
    const auto characters = static_cast<std::size_t>(std::count_if(
        password.begin(), password.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
    if (characters >= kLeastPasswordCharacters && password.size() <= kMostPasswordBytes) return done();
    return Error(ErrorKind::invalid,
                 fmt::format("the password has {} characters in {} bytes, expected {} characters or more in {} bytes",
                             characters, password.size(), kLeastPasswordCharacters, kMostPasswordBytes),
                 {}, "a sentence of several words is easy to remember and hard to guess");
}

Result<std::string> hash_password(std::string_view password) {
    TRY_VOID(check_password(password));
    return made(password);
}

bool password_is(std::string_view password, const std::string& hash) {
    if (password.size() > kMostPasswordBytes) return false;
    // Nobody's: whoever asks for names that there are not learns nothing from the time.
    if (hash.empty()) {
        (void)made(password);
        return false;
    }
    const std::lock_guard lock(one_at_a_time());
    return argon2id_verify(hash.c_str(), password.data(), password.size()) == ARGON2_OK;
}

}  // namespace stoker
