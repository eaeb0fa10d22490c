// JSON Schemas (draft 2020-12) from the same lists of fields that write and read the structs (base/codec.h). What the
// writer leaves out when it is empty is optional, the rest is required; a reader has no required fields but those that
// the table of hints names.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/views.h"
#include "server/views_admission.h"
#include "server/views_audit.h"
#include "server/views_config.h"
#include "server/views_edit.h"
#include "server/views_limits.h"
#include "server/views_nodes.h"
#include "server/views_observe.h"
#include "server/views_tenants.h"
#include "server/views_users.h"

namespace stoker::api {

// What a type cannot say: meaning, bounds, pattern. By "Component.field".
struct Hint {
    std::string_view key, description;
    std::optional<std::int64_t> low, high;  // of the number, or of the length of a text or list
    std::string_view pattern = {};
    bool required = false;  // also in requests
};
const std::vector<Hint>& hints();
const Hint* hint_of(std::string_view component, std::string_view field);

// Names of the components; a struct without one is written in place.
template <class T>
constexpr std::string_view component_name() {
    return "";
}

class Schemas {
public:
    // A $ref to the component, made when it is not there yet. In requests the name ends in "Input".
    template <class T>
    Json ref(bool input = false) {
        std::string name(component_name<T>());
        if (input && !name.ends_with("Body")) name += "Input";
        if (!made_.contains(name)) {
            made_.emplace(name, Json());  // so that a type may hold itself
            made_[name] = object<T>(std::string(component_name<T>()), input);
        }
        return Json::object().set("$ref", "#/components/schemas/" + name);
    }
    void put(std::string name, Json schema) { made_[std::move(name)] = std::move(schema); }
    const std::map<std::string, Json>& all() const { return made_; }

    template <class T>
    Json schema(bool input) {
        using namespace stoker::codec;
        Json s = Json::object();
        if constexpr (std::is_same_v<T, bool>) {
            s.set("type", "boolean");
        } else if constexpr (std::is_same_v<T, std::string>) {
            s.set("type", "string");
        } else if constexpr (std::is_same_v<T, Cause>) {
            Json words = Json::array();
            for (int i = 0; i < 256; ++i) {
                const auto cause = static_cast<Cause>(i);
                if (parse_cause(to_string(cause)) == cause) words.push(to_string(cause));
            }
            s.set("type", "string").set("enum", std::move(words));
        } else if constexpr (Named<T>) {
            Json words = Json::array();
            for (const auto& [value, name] : enum_names(T{})) words.push(std::string_view(name));
            s.set("type", "string").set("enum", std::move(words));
        } else if constexpr (std::is_integral_v<T>) {
            s.set("type", "integer");
            if constexpr (std::is_unsigned_v<T>) s.set("minimum", 0);
            if constexpr (sizeof(T) < 8) {
                s.set("minimum", static_cast<std::int64_t>(std::numeric_limits<T>::min()));
                s.set("maximum", static_cast<std::int64_t>(std::numeric_limits<T>::max()));
            } else {
                s.set("format", "int64");
            }
        } else if constexpr (std::is_floating_point_v<T>) {
            s.set("type", "number");
        } else if constexpr (std::is_same_v<T, RunId>) {
            s.set("type", "string").set("pattern", "^r-[1-9][0-9]*$");
        } else if constexpr (TextId<T>) {
            s.set("type", "string");
        } else if constexpr (IsOptional<T>::value) {
            return schema<typename T::value_type>(input);
        } else if constexpr (IsVector<T>::value) {
            s.set("type", "array").set("items", schema<typename T::value_type>(input));
        } else if constexpr (IsTextMap<T>::value) {
            s.set("type", "object").set("additionalProperties", schema<typename T::mapped_type>(input));
        } else if constexpr (!component_name<T>().empty()) {
            return ref<T>(input);
        } else {
            return object<T>("", input);
        }
        return s;
    }

private:
    class Visitor {
    public:
        Visitor(Schemas& schemas, std::string name, bool input)
            : schemas_(schemas), name_(std::move(name)), input_(input) {}
        template <class T>
        void operator()(std::string_view key, T& value) {
            using namespace stoker::codec;
            constexpr bool kMayMiss =
                std::is_same_v<T, std::string> || IsTextMap<T>::value || IsOptional<T>::value || TextId<T>;
            Json field = schemas_.schema<T>(input_);
            const Hint* hint = hint_of(name_, key);
            if (hint != nullptr) {
                if (!hint->description.empty()) field.set("description", hint->description);
                constexpr bool kText = std::is_same_v<T, std::string> || std::is_same_v<T, std::optional<std::string>>;
                constexpr bool kList = IsVector<T>::value;
                const char* low = kText ? "minLength" : kList ? "minItems" : "minimum";
                const char* high = kText ? "maxLength" : kList ? "maxItems" : "maximum";
                if (hint->low && input_) field.set(low, *hint->low);
                if (hint->high && input_) field.set(high, *hint->high);
                if (!hint->pattern.empty() && input_) field.set("pattern", hint->pattern);
            }
            if (key.ends_with("_at") || key == "not_before") field.set("format", "date-time");
            if (input_) {
                if (hint != nullptr && hint->required)
                    required_.push_back(std::string(key));
                else if constexpr (!kMayMiss && !IsVector<T>::value && !std::is_class_v<T>)
                    field.set("default", write(value));
            } else if (!kMayMiss) {
                required_.push_back(std::string(key));
            }
            properties_.set(std::string(key), std::move(field));
        }
        Json finish() {
            Json required = Json::array();
            for (const std::string& key : required_) required.push(key);
            Json s = Json::object().set("type", "object").set("additionalProperties", false);
            s.set("properties", std::move(properties_));
            if (!required_.empty()) s.set("required", std::move(required));
            return s;
        }

    private:
        Schemas& schemas_;
        std::string name_;
        bool input_;
        Json properties_ = Json::object();
        std::vector<std::string> required_;
    };

    template <class T>
    Json object(std::string name, bool input) {
        Visitor visitor(*this, std::move(name), input);
        T value{};
        fields(visitor, value);
        return visitor.finish();
    }

    std::map<std::string, Json> made_;
};

#define STOKER_COMPONENT(type, name)                    \
    template <>                                         \
    constexpr std::string_view component_name<type>() { \
        return name;                                    \
    }
STOKER_COMPONENT(RunSpec, "RunSpec")
STOKER_COMPONENT(GraphStep, "GraphStep")
STOKER_COMPONENT(RankNeeds, "RankNeeds")
STOKER_COMPONENT(CheckpointPolicy, "CheckpointPolicy")
STOKER_COMPONENT(LeaseSpec, "LeaseSpec")
STOKER_COMPONENT(RepeatSpec, "RepeatSpec")
STOKER_COMPONENT(NotifySpec, "NotifySpec")
STOKER_COMPONENT(SourceSpec, "SourceSpec")
STOKER_COMPONENT(PrerequisitesSpec, "PrerequisitesSpec")
STOKER_COMPONENT(ObserveSpec, "ObserveSpec")
STOKER_COMPONENT(PredictionSpec, "PredictionSpec")
STOKER_COMPONENT(RunItem, "RunItem")
STOKER_COMPONENT(RankView, "Rank")
STOKER_COMPONENT(EngineWaitView, "EngineWait")
STOKER_COMPONENT(AttemptView, "Attempt")
STOKER_COMPONENT(WhyView, "Why")
STOKER_COMPONENT(EtaView, "Eta")
STOKER_COMPONENT(CheckpointItem, "Checkpoint")
STOKER_COMPONENT(CheckpointsView, "Checkpoints")
STOKER_COMPONENT(StoredView, "StoredCheckpoints")
STOKER_COMPONENT(UploadPolicy, "UploadPolicy")
STOKER_COMPONENT(StepView, "Step")
STOKER_COMPONENT(RunView, "Run")
STOKER_COMPONENT(RunPage, "RunPage")
STOKER_COMPONENT(Changed, "Changed")
STOKER_COMPONENT(Submitted, "Submitted")
STOKER_COMPONENT(WhatIfView, "WhatIf")
STOKER_COMPONENT(NodeView, "Node")
STOKER_COMPONENT(NodeList, "NodeList")
STOKER_COMPONENT(NodeChanged, "NodeChanged")
STOKER_COMPONENT(NodeCheckView, "NodeCheck")
STOKER_COMPONENT(NodeBlameView, "NodeBlame")
STOKER_COMPONENT(NodeCheckBody, "NodeCheckBody")
STOKER_COMPONENT(NodeCheckAsked, "NodeCheckAsked")
STOKER_COMPONENT(HealthCheck, "HealthCheck")
STOKER_COMPONENT(SeriesView, "Series")
STOKER_COMPONENT(MetricsView, "RunMetrics")
STOKER_COMPONENT(RankSeriesView, "RankSeries")
STOKER_COMPONENT(SeriesPage, "SeriesPage")
STOKER_COMPONENT(ExplainedTerm, "ExplainedTerm")
STOKER_COMPONENT(DiagnosisView, "FoundCause")
STOKER_COMPONENT(DiagnosisNoteView, "CauseNote")
STOKER_COMPONENT(ExplanationView, "Explanation")
STOKER_COMPONENT(ArtifactList, "ArtifactList")
STOKER_COMPONENT(UsageLine, "UsageLine")
STOKER_COMPONENT(RoleView, "UserRole")
STOKER_COMPONENT(UserView, "User")
STOKER_COMPONENT(UserList, "UserList")
STOKER_COMPONENT(LoginGiven, "LoginGiven")
STOKER_COMPONENT(LoginBody, "LoginBody")
STOKER_COMPONENT(SetupBody, "SetupBody")
STOKER_COMPONENT(OwnPasswordBody, "OwnPasswordBody")
STOKER_COMPONENT(UserBody, "UserBody")
STOKER_COMPONENT(RoleBody, "RoleBody")
STOKER_COMPONENT(PasswordBody, "PasswordBody")
STOKER_COMPONENT(DisableBody, "DisableBody")
STOKER_COMPONENT(RotateBody, "RotateBody")
STOKER_COMPONENT(AuditLine, "AuditLine")
STOKER_COMPONENT(AuditPage, "AuditPage")
STOKER_COMPONENT(AdmissionRuleView, "AdmissionRule")
STOKER_COMPONENT(AdmissionList, "AdmissionList")
STOKER_COMPONENT(AdmissionTestBody, "AdmissionTestBody")
STOKER_COMPONENT(RefusedRun, "RefusedRun")
STOKER_COMPONENT(AdmissionTest, "AdmissionTest")
STOKER_COMPONENT(UsageView, "Usage")
STOKER_COMPONENT(VersionView, "Version")
STOKER_COMPONENT(HealthView, "Health")
STOKER_COMPONENT(BackupView, "Backup")
STOKER_COMPONENT(ConfigItem, "ConfigItem")
STOKER_COMPONENT(ConfigSetting, "ConfigSetting")
STOKER_COMPONENT(ConfigText, "ConfigText")
STOKER_COMPONENT(ConfigView, "Config")
STOKER_COMPONENT(ConfigVersionList, "ConfigVersionList")
STOKER_COMPONENT(ConfigSet, "ConfigSet")
STOKER_COMPONENT(ConfigBody, "ConfigBody")
STOKER_COMPONENT(RollbackBody, "RollbackBody")
STOKER_COMPONENT(EditBody, "EditBody")
STOKER_COMPONENT(EvictBody, "EvictBody")
STOKER_COMPONENT(LeaseBody, "LeaseBody")
STOKER_COMPONENT(BackupBody, "BackupBody")
STOKER_COMPONENT(QuotaView, "Quota")
STOKER_COMPONENT(QuotaList, "QuotaList")
STOKER_COMPONENT(QuotaBody, "QuotaBody")
STOKER_COMPONENT(BudgetView, "Budget")
STOKER_COMPONENT(BudgetList, "BudgetList")
STOKER_COMPONENT(BudgetBody, "BudgetBody")
STOKER_COMPONENT(InvoiceLine, "InvoiceLine")
STOKER_COMPONENT(Invoice, "Invoice")
STOKER_COMPONENT(ChargeItem, "Charge")
STOKER_COMPONENT(ChargeList, "ChargeList")
STOKER_COMPONENT(WhatIfChanges, "WhatIfChanges")
STOKER_COMPONENT(OrganisationView, "Organisation")
STOKER_COMPONENT(OrganisationList, "OrganisationList")
STOKER_COMPONENT(ProjectView, "Project")
STOKER_COMPONENT(ProjectList, "ProjectList")
STOKER_COMPONENT(KeyView, "Key")
STOKER_COMPONENT(KeyList, "KeyList")
STOKER_COMPONENT(KeyGiven, "KeyGiven")
STOKER_COMPONENT(Caller, "Caller")
STOKER_COMPONENT(OrganisationBody, "OrganisationBody")
STOKER_COMPONENT(ProjectBody, "ProjectBody")
STOKER_COMPONENT(KeyBody, "KeyBody")
#undef STOKER_COMPONENT

}  // namespace stoker::api
