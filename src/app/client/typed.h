// Answers of the API as the structs they were written from (server/views.h).
#pragma once

#include <string>

#include "app/client/client.h"
#include "base/codec.h"
#include "base/newer_keys.h"

namespace stoker {

// What a newer server says beyond what is known here is passed over.
template <class T>
Result<T> typed(const Document& document) {
    Problems problems;
    T value{};
    codec::read(document.root(), "", value, problems);
    codec::pass_over_unknown_keys(problems);
    if (!problems.empty()) return Error(ErrorKind::internal, std::move(problems)).while_doing("reading the answer");
    return value;
}

template <class T>
Result<T> get(Client& client, const std::string& target) {
    TRY(const Document document, client.get(target));
    return typed<T>(document);
}

template <class T>
Result<T> post(Client& client, const std::string& target, const Json& body, const HttpHeaders& headers = {}) {
    TRY(const Document document, client.post(target, body, headers));
    return typed<T>(document);
}

// "r-7", or "7" for short.
Result<RunId> run_named(std::string_view text);
// The same, or the newest run of that name.
Result<RunId> find_run(Client& client, const std::string& word);

}  // namespace stoker
