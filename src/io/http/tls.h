// Certificates for servers of our own.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

struct Certificate {
    std::string certificate_pem, key_pem;
};

// Self-signed, ECDSA P-256, valid for these names and addresses ("localhost", "10.0.0.5") and this many days.
Result<Certificate> make_certificate(const std::vector<std::string>& names, int days);
// invalid: not a PEM certificate, the key does not belong to it, it has expired.
Status check_certificate(const Certificate& certificate);
// The DNS names and addresses that it is valid for; a name may begin with "*.". Empty: it has none, or is none.
std::vector<std::string> names_of_certificate(const std::string& certificate_pem);

}  // namespace stoker
