// The certificate of a server that was given none: made once, and the same after a restart.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "io/files.h"
#include "server/owner_file.h"
#include "server/server.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int kCertificateDays = 825;  // what browsers accept at most
constexpr std::size_t kMostCertificate = 1 << 20;

}  // namespace

Result<Certificate> own_certificate(const std::string& folder, const std::string& address,
                                    const std::vector<std::string>& host_names) {
    const std::string certificate_file = folder + "/tls/cert.pem", key_file = folder + "/tls/key.pem";
    std::error_code code;
    if (fs::exists(certificate_file, code) && fs::exists(key_file, code)) {
        TRY(std::string certificate, read_file(certificate_file, kMostCertificate));
        TRY(std::string key, read_file(key_file, kMostCertificate));
        Certificate kept{std::move(certificate), std::move(key)};
        const std::vector<std::string> has = names_of_certificate(kept.certificate_pem);
        const bool all = std::all_of(host_names.begin(), host_names.end(), [&](const std::string& name) {
            return std::find(has.begin(), has.end(), name) != has.end();
        });
        if (all && check_certificate(kept)) return kept;
    }
    std::vector<std::string> names{"localhost", "127.0.0.1", "::1"};
    if (address != "0.0.0.0" && address != "::") names.push_back(address);
    names.insert(names.end(), host_names.begin(), host_names.end());
    char host[256] = "";
    if (::gethostname(host, sizeof host - 1) == 0 && host[0] != '\0') names.emplace_back(host);
    TRY(Certificate made, make_certificate(names, kCertificateDays));
    fs::create_directories(folder + "/tls", code);
    TRY_VOID(write_for_owner(key_file, made.key_pem));
    TRY_VOID(write_file_atomic(certificate_file, made.certificate_pem));
    return made;
}

}  // namespace stoker
