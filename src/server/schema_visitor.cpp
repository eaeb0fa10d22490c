#include "server/schema_visitor.h"

#include <limits>

#include "base/codec.h"
#include "serve/endpoints/endpoint.h"
#include "server/bodies.h"
#include "server/desk.h"
#include "server/views.h"
#include "server/views_admission.h"
#include "server/views_audit.h"
#include "server/views_config.h"
#include "server/views_edit.h"
#include "server/views_endpoints.h"
#include "server/views_gpus.h"
#include "server/views_idle.h"
#include "server/views_limits.h"
#include "server/views_nodes.h"
#include "server/views_observe.h"
#include "server/views_tenants.h"
#include "server/views_users.h"
#include "server/views_waste.h"

namespace stoker::api {

using namespace stoker::codec;

namespace {

// Names of the components.
std::string_view component_name(const Shape& shape) {
    static const std::map<const Shape*, std::string_view> names = {
        {&kShape<RunSpec>, "RunSpec"},
        {&kShape<GraphStep>, "GraphStep"},
        {&kShape<RankNeeds>, "RankNeeds"},
        {&kShape<CheckpointPolicy>, "CheckpointPolicy"},
        {&kShape<LeaseSpec>, "LeaseSpec"},
        {&kShape<RepeatSpec>, "RepeatSpec"},
        {&kShape<NotifySpec>, "NotifySpec"},
        {&kShape<SourceSpec>, "SourceSpec"},
        {&kShape<PrerequisitesSpec>, "PrerequisitesSpec"},
        {&kShape<ObserveSpec>, "ObserveSpec"},
        {&kShape<PredictionSpec>, "PredictionSpec"},
        {&kShape<RunItem>, "RunItem"},
        {&kShape<RankView>, "Rank"},
        {&kShape<EngineWaitView>, "EngineWait"},
        {&kShape<AttemptView>, "Attempt"},
        {&kShape<WhyView>, "Why"},
        {&kShape<EtaView>, "Eta"},
        {&kShape<CheckpointItem>, "Checkpoint"},
        {&kShape<CheckpointsView>, "Checkpoints"},
        {&kShape<StoredView>, "StoredCheckpoints"},
        {&kShape<UploadPolicy>, "UploadPolicy"},
        {&kShape<StepView>, "Step"},
        {&kShape<RunView>, "Run"},
        {&kShape<RunPage>, "RunPage"},
        {&kShape<Changed>, "Changed"},
        {&kShape<Submitted>, "Submitted"},
        {&kShape<WhatIfView>, "WhatIf"},
        {&kShape<NodeView>, "Node"},
        {&kShape<NodeList>, "NodeList"},
        {&kShape<NodeChanged>, "NodeChanged"},
        {&kShape<NodeCheckView>, "NodeCheck"},
        {&kShape<NodeBlameView>, "NodeBlame"},
        {&kShape<NodeCheckBody>, "NodeCheckBody"},
        {&kShape<NodeCheckAsked>, "NodeCheckAsked"},
        {&kShape<HealthCheck>, "HealthCheck"},
        {&kShape<ReportedProcess>, "ReportedProcess"},
        {&kShape<ReportedXid>, "ReportedXid"},
        {&kShape<ReportedBoard>, "ReportedGpu"},
        {&kShape<ReportedFigures>, "ReportedFigures"},
        {&kShape<ReportedPoint>, "ReportedPoint"},
        {&kShape<GpuReport>, "GpuReport"},
        {&kShape<GpuReportTaken>, "GpuReportTaken"},
        {&kShape<NodeGpusItem>, "NodeGpusItem"},
        {&kShape<FleetGpus>, "FleetGpus"},
        {&kShape<NodeGpusView>, "NodeGpus"},
        {&kShape<GpuSeriesView>, "GpuSeries"},
        {&kShape<NodeGpuSeries>, "NodeGpuSeries"},
        {&kShape<SeriesView>, "Series"},
        {&kShape<MetricsView>, "RunMetrics"},
        {&kShape<RankSeriesView>, "RankSeries"},
        {&kShape<SeriesPage>, "SeriesPage"},
        {&kShape<ExplainedTerm>, "ExplainedTerm"},
        {&kShape<DiagnosisView>, "FoundCause"},
        {&kShape<DiagnosisNoteView>, "CauseNote"},
        {&kShape<ExplanationView>, "Explanation"},
        {&kShape<FigureView>, "EvidenceFigure"},
        {&kShape<SpanView>, "EvidenceSpan"},
        {&kShape<GpuUseView>, "GpuUse"},
        {&kShape<TimelineView>, "Timeline"},
        {&kShape<ArtifactList>, "ArtifactList"},
        {&kShape<UsageLine>, "UsageLine"},
        {&kShape<RoleView>, "UserRole"},
        {&kShape<UserView>, "User"},
        {&kShape<UserList>, "UserList"},
        {&kShape<LoginGiven>, "LoginGiven"},
        {&kShape<LoginBody>, "LoginBody"},
        {&kShape<SignOn>, "SignOn"},
        {&kShape<WasteReport>, "Waste"},
        {&kShape<WasteLine>, "WasteLine"},
        {&kShape<IdleRunView>, "IdleRun"},
        {&kShape<IdleList>, "IdleList"},
        {&kShape<KeepBody>, "KeepBody"},
        {&kShape<SignOnBody>, "SignOnBody"},
        {&kShape<SetupBody>, "SetupBody"},
        {&kShape<OwnPasswordBody>, "OwnPasswordBody"},
        {&kShape<UserBody>, "UserBody"},
        {&kShape<RoleBody>, "RoleBody"},
        {&kShape<PasswordBody>, "PasswordBody"},
        {&kShape<DisableBody>, "DisableBody"},
        {&kShape<RotateBody>, "RotateBody"},
        {&kShape<AuditLine>, "AuditLine"},
        {&kShape<AuditPage>, "AuditPage"},
        {&kShape<AdmissionRuleView>, "AdmissionRule"},
        {&kShape<AdmissionList>, "AdmissionList"},
        {&kShape<AdmissionTestBody>, "AdmissionTestBody"},
        {&kShape<RefusedRun>, "RefusedRun"},
        {&kShape<AdmissionTest>, "AdmissionTest"},
        {&kShape<TemplateView>, "Template"},
        {&kShape<TemplateList>, "TemplateList"},
        {&kShape<EndpointItem>, "EndpointItem"},
        {&kShape<EndpointList>, "EndpointList"},
        {&kShape<EndpointRevisionView>, "EndpointRevision"},
        {&kShape<EndpointFigure>, "EndpointFigure"},
        {&kShape<EndpointCause>, "EndpointCause"},
        {&kShape<EndpointStatus>, "EndpointStatus"},
        {&kShape<ReplicaStatus>, "EndpointReplica"},
        {&kShape<ServingEvidence>, "ServingEvidence"},
        {&kShape<ServingPromise>, "ServingPromise"},
        {&kShape<PromisedRange>, "PromisedRange"},
        {&kShape<EndpointView>, "Endpoint"},
        {&kShape<FileBody>, "FileBody"},
        {&kShape<DeployBody>, "DeployBody"},
        {&kShape<ScaleBody>, "ScaleBody"},
        {&kShape<EndpointRollbackBody>, "EndpointRollbackBody"},
        {&kShape<UsageView>, "Usage"},
        {&kShape<VersionView>, "Version"},
        {&kShape<HealthView>, "Health"},
        {&kShape<BackupView>, "Backup"},
        {&kShape<ConfigItem>, "ConfigItem"},
        {&kShape<ConfigSetting>, "ConfigSetting"},
        {&kShape<ConfigText>, "ConfigText"},
        {&kShape<ConfigView>, "Config"},
        {&kShape<ConfigVersionList>, "ConfigVersionList"},
        {&kShape<ConfigSet>, "ConfigSet"},
        {&kShape<ConfigBody>, "ConfigBody"},
        {&kShape<RollbackBody>, "RollbackBody"},
        {&kShape<EditBody>, "EditBody"},
        {&kShape<EvictBody>, "EvictBody"},
        {&kShape<LeaseBody>, "LeaseBody"},
        {&kShape<BackupBody>, "BackupBody"},
        {&kShape<QuotaView>, "Quota"},
        {&kShape<QuotaList>, "QuotaList"},
        {&kShape<QuotaBody>, "QuotaBody"},
        {&kShape<BudgetView>, "Budget"},
        {&kShape<BudgetList>, "BudgetList"},
        {&kShape<BudgetBody>, "BudgetBody"},
        {&kShape<InvoiceLine>, "InvoiceLine"},
        {&kShape<Invoice>, "Invoice"},
        {&kShape<TokenItem>, "TokenCharge"},
        {&kShape<ChargeItem>, "Charge"},
        {&kShape<ChargeList>, "ChargeList"},
        {&kShape<WhatIfChanges>, "WhatIfChanges"},
        {&kShape<OrganisationView>, "Organisation"},
        {&kShape<OrganisationList>, "OrganisationList"},
        {&kShape<ProjectView>, "Project"},
        {&kShape<ProjectList>, "ProjectList"},
        {&kShape<KeyView>, "Key"},
        {&kShape<KeyList>, "KeyList"},
        {&kShape<KeyGiven>, "KeyGiven"},
        {&kShape<Caller>, "Caller"},
        {&kShape<OrganisationBody>, "OrganisationBody"},
        {&kShape<ProjectBody>, "ProjectBody"},
        {&kShape<KeyBody>, "KeyBody"},
    };
    const auto found = names.find(&shape);
    return found == names.end() ? std::string_view() : found->second;
}

bool is_plain(ShapeKind kind) {
    return kind == ShapeKind::boolean || kind == ShapeKind::integer || kind == ShapeKind::real ||
           kind == ShapeKind::cause || kind == ShapeKind::word;
}

}  // namespace

class Schemas::Visitor final : public FieldVisitor {
public:
    Visitor(Schemas& schemas, std::string name, bool input)
        : schemas_(schemas), name_(std::move(name)), input_(input) {}
    Json finish() {
        Json required = Json::array();
        for (const std::string& key : required_) required.push(key);
        Json s = Json::object().set("type", "object").set("additionalProperties", false);
        s.set("properties", std::move(properties_));
        if (!required_.empty()) s.set("required", std::move(required));
        return s;
    }

private:
    void field(std::string_view key, void* value, const Shape& shape) override {
        Json field = schemas_.schema(shape, input_);
        const Hint* hint = hint_of(name_, key);
        if (hint != nullptr) {
            if (!hint->description.empty()) field.set("description", hint->description);
            const bool text = shape.kind == ShapeKind::text ||
                              (shape.kind == ShapeKind::optional && shape.inner->kind == ShapeKind::text);
            const bool list = shape.kind == ShapeKind::list;
            const char* low = text ? "minLength" : list ? "minItems" : "minimum";
            const char* high = text ? "maxLength" : list ? "maxItems" : "maximum";
            if (hint->low && input_) field.set(low, *hint->low);
            if (hint->high && input_) field.set(high, *hint->high);
            if (!hint->pattern.empty() && input_) field.set("pattern", hint->pattern);
        }
        if (key.ends_with("_at") || key == "not_before") field.set("format", "date-time");
        if (input_) {
            if (hint != nullptr && hint->required)
                required_.push_back(std::string(key));
            else if (is_plain(shape.kind))
                field.set("default", write_shaped(value, shape));
        } else if (!may_be_left_out(shape)) {
            required_.push_back(std::string(key));
        }
        properties_.set(std::string(key), std::move(field));
    }

    Schemas& schemas_;
    std::string name_;
    bool input_;
    Json properties_ = Json::object();
    std::vector<std::string> required_;
};

Json Schemas::ref(const Shape& shape, bool input) {
    std::string name(component_name(shape));
    if (input && !name.ends_with("Body")) name += "Input";
    if (!made_.contains(name)) {
        made_.emplace(name, Json());  // so that a type may hold itself
        made_[name] = object(shape, std::string(component_name(shape)), input);
    }
    return Json::object().set("$ref", "#/components/schemas/" + name);
}

Json Schemas::schema(const Shape& shape, bool input) {
    Json s = Json::object();
    switch (shape.kind) {
        case ShapeKind::boolean: s.set("type", "boolean"); break;
        case ShapeKind::text: s.set("type", "string"); break;
        case ShapeKind::cause: {
            Json words = Json::array();
            for (int i = 0; i < 256; ++i) {
                const auto cause = static_cast<Cause>(i);
                if (parse_cause(to_string(cause)) == cause) words.push(to_string(cause));
            }
            s.set("type", "string").set("enum", std::move(words));
            break;
        }
        case ShapeKind::word: {
            std::vector<std::string_view> all;
            shape.words(all);
            Json words = Json::array();
            for (const std::string_view name : all) words.push(name);
            s.set("type", "string").set("enum", std::move(words));
            break;
        }
        case ShapeKind::integer:
            s.set("type", "integer");
            if (!shape.is_signed) s.set("minimum", 0);
            if (shape.bytes < sizeof(std::int64_t)) {
                s.set("minimum", lowest(shape));
                s.set("maximum", static_cast<std::int64_t>(highest(shape)));
            } else {
                s.set("format", "int64");
            }
            break;
        case ShapeKind::real: s.set("type", "number"); break;
        case ShapeKind::id:
            s.set("type", "string");
            if (&shape == &kShape<RunId>) s.set("pattern", "^r-[1-9][0-9]*$");
            break;
        case ShapeKind::optional: return schema(*shape.inner, input);
        case ShapeKind::list: s.set("type", "array").set("items", schema(*shape.inner, input)); break;
        case ShapeKind::map: s.set("type", "object").set("additionalProperties", schema(*shape.inner, input)); break;
        case ShapeKind::object: return component_name(shape).empty() ? object(shape, "", input) : ref(shape, input);
    }
    return s;
}

Json Schemas::object(const Shape& shape, std::string name, bool input) {
    Visitor visitor(*this, std::move(name), input);
    struct Looking {
        FieldVisitor& visitor;
        const Shape& shape;
    } looking{visitor, shape};
    shape.with_new(&looking, [](void* context, void* value) {
        const Looking& look = *static_cast<Looking*>(context);
        look.shape.visit(look.visitor, value);
    });
    return visitor.finish();
}

}  // namespace stoker::api
