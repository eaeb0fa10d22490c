// A listing that is misread makes a checkpoint invisible, or a file of a stranger one of ours.
#include "formats/xml_text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(XmlText, ReadsAListingOfAStore) {
    const auto root = parse_xml(
        "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- a > b --><s:List xmlns:s='x>y'><Prefix/><Contents><Key>a&amp;b"
        "&#x20AC;</Key><Size>12</Size></Contents><Contents><Key><![CDATA[<c>]]></Key></Contents></s:List>\n");
    ASSERT_TRUE(root.ok()) << root.error().text();
    EXPECT_EQ(root->name, "List");
    ASSERT_EQ(root->children.size(), 3u);
    EXPECT_EQ(root->text_of("Prefix"), "");
    EXPECT_EQ(root->children[1].text_of("Key"), "a&b€");
    EXPECT_EQ(root->children[2].text_of("Key"), "<c>");
    EXPECT_EQ(root->find("Owner"), nullptr);
}

TEST(XmlText, RefusesWhatIsBrokenOrMeantToHurt) {
    std::string deep;
    for (int i = 0; i < 40; ++i) deep += "<a>";
    for (const std::string& text : {std::string(), std::string("no"), std::string("<a>"), std::string("<a></b>"),
                                    std::string("<a/><b/>"), std::string("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>"),
                                    std::string("<a>&x;</a>"), std::string("<a>&#0;</a>"), std::string("<a b='"),
                                    std::string("<a>&"), std::string("<"), std::string("<a><!--"), deep})
        EXPECT_FALSE(parse_xml(text).ok()) << text;
    EXPECT_EQ(xml_escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
}

// A page, a report for a build server and a request to a store each keep what they kept before there was one escaper.
TEST(XmlText, EscapesWhatThePlaceNeeds) {
    const std::string text = "a<b>&\"'\n\t\r\x01\x7f\xc3\xa9";
    EXPECT_EQ(xml_escaped(text), "a&lt;b&gt;&amp;&quot;'\n\t\r\x01\x7f\xc3\xa9");
    EXPECT_EQ(xml_escaped(text, kXmlAttribute), "a&lt;b&gt;&amp;&quot;'&#10;\t??\x7f\xc3\xa9");
    EXPECT_EQ(xml_escaped(text, kHtml), "a&lt;b&gt;&amp;&quot;&#39;\n\t\x7f\xc3\xa9");
}

}  // namespace
}  // namespace stoker
