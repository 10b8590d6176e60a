#include "deploy/runtime/bundle/json.h"

#include <charconv>
#include <cstdio>
#include <utility>

namespace hone {

// Recursive descent. After the first failure every method returns at once and the error stays.
class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  RuntimeResult<Json> Document() {
    RuntimeResult<Json> value{Json()};
    Value(&*value, 0);
    SkipSpace();
    if (!failed_ && at_ != text_.size()) Fail("something follows the end of the document");
    if (failed_) return RuntimeError(RuntimeCode::kCorrupt, "JSON, byte " + std::to_string(at_) + ": " + why_);
    return value;
  }

 private:
  static constexpr int kMaxDepth = 64;

  void Fail(const char* why) {
    if (!failed_) why_ = why;
    failed_ = true;
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool Accept(char c) {
    SkipSpace();
    if (failed_ || at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c, const char* why) {
    if (!Accept(c)) Fail(why);
  }
  bool AcceptWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void Value(Json* out, int depth) {
    SkipSpace();
    if (failed_) return;
    if (depth > kMaxDepth) return Fail("nested too deeply");
    if (at_ >= text_.size()) return Fail("the document ends too early");
    switch (text_[at_]) {
      case '{': return Object(out, depth);
      case '[': return Array(out, depth);
      case '"': {
        std::string text;
        String(&text);
        out->value_ = std::move(text);
        return;
      }
      case 't':
        if (AcceptWord("true")) out->value_ = true;
        else Fail("unknown word");
        return;
      case 'f':
        if (AcceptWord("false")) out->value_ = false;
        else Fail("unknown word");
        return;
      case 'n':
        if (!AcceptWord("null")) Fail("unknown word");
        return;
      default: return Number(out);
    }
  }

  void Object(Json* out, int depth) {
    Json::Object members;
    ++at_;
    if (!Accept('}')) {
      do {
        std::string key;
        SkipSpace();
        if (failed_ || at_ >= text_.size() || text_[at_] != '"') return Fail("a member's name is expected");
        String(&key);
        Expect(':', "a colon is expected");
        Json value;
        Value(&value, depth + 1);
        if (failed_) return;
        if (!members.emplace(std::move(key), std::move(value)).second) return Fail("a name occurs twice in an object");
      } while (Accept(','));
      Expect('}', "a comma or the end of the object is expected");
    }
    out->value_ = std::move(members);
  }

  void Array(Json* out, int depth) {
    Json::Array items;
    ++at_;
    if (!Accept(']')) {
      do {
        Value(&items.emplace_back(), depth + 1);
        if (failed_) return;
      } while (Accept(','));
      Expect(']', "a comma or the end of the array is expected");
    }
    out->value_ = std::move(items);
  }

  void String(std::string* out) {
    ++at_;
    while (true) {
      if (at_ >= text_.size()) return Fail("a string does not end");
      const unsigned char c = static_cast<unsigned char>(text_[at_++]);
      if (c == '"') return;
      if (c < 0x20) return Fail("a control character in a string");
      if (c != '\\') {
        *out += static_cast<char>(c);
        continue;
      }
      if (at_ >= text_.size()) return Fail("a string does not end");
      switch (text_[at_++]) {
        case '"': *out += '"'; break;
        case '\\': *out += '\\'; break;
        case '/': *out += '/'; break;
        case 'b': *out += '\b'; break;
        case 'f': *out += '\f'; break;
        case 'n': *out += '\n'; break;
        case 'r': *out += '\r'; break;
        case 't': *out += '\t'; break;
        case 'u': {
          uint32_t code = Hex4();
          if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
            if (!AcceptWord("\\u")) return Fail("half of a surrogate pair");
            const uint32_t low = Hex4();
            if (low < 0xDC00 || low > 0xDFFF) return Fail("half of a surrogate pair");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          } else if (code >= 0xDC00 && code <= 0xDFFF) {
            return Fail("half of a surrogate pair");
          }
          if (failed_) return;
          AppendUtf8(code, out);
          break;
        }
        default: return Fail("unknown escape in a string");
      }
    }
  }

  uint32_t Hex4() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || end != digits.data() + 4) {
      Fail("four hexadecimal digits are expected");
      return 0;
    }
    at_ += 4;
    return code;
  }

  static void AppendUtf8(uint32_t code, std::string* out) {
    const auto put = [out](uint32_t byte) { *out += static_cast<char>(byte); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xC0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xE0 | code >> 12);
      } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
      }
      put(0x80 | (code >> 6 & 0x3F));
    }
    put(0x80 | (code & 0x3F));
  }

  void Number(Json* out) {
    const size_t begin = at_;
    const auto digits = [this] {
      const size_t from = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      return at_ > from;
    };
    bool whole = true;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    if (!digits()) return Fail("a value is expected");
    if (at_ < text_.size() && text_[at_] == '.') {
      whole = false;
      ++at_;
      if (!digits()) return Fail("digits are expected after the point");
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      whole = false;
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      if (!digits()) return Fail("digits are expected in the exponent");
    }
    const char* first = text_.data() + begin;
    const char* last = text_.data() + at_;
    int64_t integer = 0;
    double real = 0;
    if (whole && std::from_chars(first, last, integer).ec == std::errc()) {
      out->value_ = integer;
    } else if (std::from_chars(first, last, real).ec == std::errc()) {
      out->value_ = real;
    } else {
      Fail("a number out of range");
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
  const char* why_ = "";
};

RuntimeResult<Json> Json::Parse(std::string_view text) { return JsonParser(text).Document(); }

double Json::number() const {
  if (const int64_t* whole = integer()) return static_cast<double>(*whole);
  const double* real = std::get_if<double>(&value_);
  return real == nullptr ? 0 : *real;
}

const Json* Json::Find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto at = members->find(key);
  return at == members->end() ? nullptr : &at->second;
}

std::string JsonQuote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace hone
