// SHA-256 (FIPS 180-4) of OpenSSL; raw digests of 32 bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr std::size_t kDigestBytes = 32;

class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;

    Sha256& add(std::string_view bytes);
    std::string finish();  // and starts anew

private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string sha256(std::string_view bytes);
std::string hex(std::string_view bytes);  // lower case
bool is_sha256(std::string_view text);    // 64 digits in hex, lower case

}  // namespace stoker
