// For tests of the client: a server that answers what it was told to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/client/client.h"

namespace stoker {

struct ScriptedTransport {
    std::map<std::string, HttpResponse> answers;  // by "GET /path" without the query
    std::vector<std::string> asked;               // "GET /path?query"

    Client client() {
        class Forward final : public Transport {
        public:
            explicit Forward(ScriptedTransport& script) : script_(script) {}
            Result<HttpResponse> send(const HttpCall& call) override {
                script_.asked.push_back(call.method + " " + call.target);
                const auto found =
                    script_.answers.find(call.method + " " + call.target.substr(0, call.target.find('?')));
                if (found == script_.answers.end()) return Error(ErrorKind::unavailable, "nobody answers");
                return found->second;
            }

        private:
            ScriptedTransport& script_;
        };
        return Client(std::make_unique<Forward>(*this), "/tmp/none", false);
    }
};

}  // namespace stoker
