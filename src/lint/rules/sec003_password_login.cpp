#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_sec003(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::vm && resource.type != ResourceType::scale_set) return;
        if (!has_gpu(resource, report) || resource.get(Attr::os_type).is_nocase("Windows")) return;
        const auto image = image_of(resource);
        if (image && (contains_nocase(image->publisher, "windows") || contains_nocase(image->offer, "win"))) return;
        const Value &login = resource.get(Attr::password_login), &password = resource.get(Attr::admin_password);
        if (says_yes(login)) {
            Finding* finding = report.add(login, resource.address, "password login is allowed on a GPU machine");
            // disable_password_authentication = false, as it is written in all of them.
            if (finding && login.source && login.use_source == nullptr && login.source->text(login.span) == "false")
                report.fix(finding, *login.source, FixClass::unsafe, "let people in by their keys only",
                           {{login.span, "true"}});
            return;
        }
        if (!password.known() || password.text.empty() || password.text.starts_with('<') ||
            password.text.starts_with('$'))
            return;
        report.add(password, resource.address, "a password for the administrator stands in the file");
    });
}

}  // namespace stoker::lint
