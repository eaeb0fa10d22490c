// For tests of the client: a server that answers what it was told to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/client/client.h"

namespace stoker {

struct ScriptedTransport {
    std::map<std::string, HttpResponse> answers;  // by "GET /path" without the query, unless by_query
    bool by_query = false;
    int missing = 0;                 // status of what has no answer; 0: nobody is there
    std::vector<std::string> asked;  // "GET /path?query"

    Client client() {
        class Forward final : public Transport {
        public:
            explicit Forward(ScriptedTransport& script) : script_(script) {}
            Result<HttpResponse> send(const HttpCall& call) override {
                script_.asked.push_back(call.method + " " + call.target);
                const std::string target =
                    script_.by_query ? call.target : call.target.substr(0, call.target.find('?'));
                const auto found = script_.answers.find(call.method + " " + target);
                if (found == script_.answers.end() && script_.missing != 0)
                    return HttpResponse{.status = script_.missing, .body = "{}"};
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
