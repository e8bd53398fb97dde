#include "src/report/markup.hpp"

#include "src/io/escape.hpp"

namespace ftax::report {

std::string escape_markup(std::string_view text) {
    std::string result;
    for (const char c : escape_terminal(text)) {
        switch (c) {
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '&':
                result += "&amp;";
                break;
            case '"':
                result += "&quot;";
                break;
            case '\'':
                result += "&#39;";
                break;
            default:
                result += c;
        }
    }
    return result;
}

}  // namespace ftax::report
