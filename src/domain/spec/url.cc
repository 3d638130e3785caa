#include "domain/spec/url.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/text.h"
#include "domain/spec/value.h"

namespace assay {
namespace {

using Failed = std::unexpected<Wrong>;
constexpr const char* kExample = "for example http://127.0.0.1:8000";

Failed wrong(std::string what, std::string hint = kExample) {
  return Failed(Wrong{std::move(what), std::move(hint)});
}

using Ipv4 = std::array<std::uint8_t, 4>;
using Ipv6 = std::array<std::uint8_t, 16>;

std::optional<Ipv4> ipv4(const std::string& host) {
  Ipv4 bytes{};
  if (inet_pton(AF_INET, host.c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

std::optional<Ipv6> ipv6(const std::string& host) {
  if (host.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos) return std::nullopt;
  Ipv6 bytes{};
  if (inet_pton(AF_INET6, host.c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

bool is_private(const Ipv4& a) {
  return a[0] == 127 || a[0] == 10 || (a[0] == 172 && (a[1] & 0xf0) == 16) ||
         (a[0] == 192 && a[1] == 168) || (a[0] == 169 && a[1] == 254) ||
         (a[0] == 100 && (a[1] & 0xc0) == 64) || a[0] == 0;
}

bool is_private(const Ipv6& a) {
  const bool unique_local = (a[0] & 0xfe) == 0xfc;
  const bool link_local = a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
  const bool loopback = std::all_of(a.begin(), a.end() - 1, [](auto b) { return b == 0; });
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool mapped = std::equal(kMapped.begin(), kMapped.end(), a.begin());
  return unique_local || link_local || loopback ||
         (mapped && is_private(Ipv4{a[12], a[13], a[14], a[15]}));
}

bool is_host_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '.' || c == '_';
}

bool is_name(std::string_view host) {
  return !host.empty() && host.size() <= 253 && host.front() != '.' && host.front() != '-' &&
         host.find("..") == std::string_view::npos && std::ranges::all_of(host, is_host_char);
}

/// "" or "/…" -> prefix without slash at its end and without /v1.
Parsed<std::string> read_prefix(std::string_view path) {
  if (path.find_first_of("?#") != std::string_view::npos) {
    return wrong("a query or fragment (?, #) has no place in the address of a server");
  }
  if (std::ranges::any_of(path, [](char c) { return c <= ' ' || c > '~' || c == '"'; })) {
    return wrong("the path has a character that must be percent-encoded", "for example %20");
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/completions")) {
    return wrong("the path names one endpoint, not the server",
                 "give the base, http://host:port; --api chooses the endpoint");
  }
  if (path.ends_with("/v1")) path.remove_suffix(3);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

Parsed<TargetUrl> read_unix(std::string_view rest) {
  TargetUrl url;
  const std::size_t colon = rest.find(":/");
  url.socket_path = rest.substr(0, colon);
  constexpr std::size_t kPathMax = 107;  // sockaddr_un::sun_path holds 108 with its NUL
  if (!rest.starts_with('/') || url.socket_path.size() > kPathMax) {
    return wrong(
        fmt::format("a unix address needs the full path of a socket, at most {} bytes", kPathMax),
        "for example unix:/run/engine.sock");
  }
  if (colon == std::string_view::npos) return url;
  Parsed<std::string> prefix = read_prefix(rest.substr(colon + 1));
  if (!prefix) return Failed(prefix.error());
  url.prefix = *prefix;
  return url;
}

/// "host", "host:port" or "[v6]:port".
Parsed<TargetUrl> read_authority(std::string_view authority) {
  if (authority.empty()) return wrong("names no host");
  TargetUrl url;
  std::string_view port;
  bool has_port = false;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos)
      return wrong("the bracket around the IPv6 address is open");
    url.host = authority.substr(1, close - 1);
    if (!ipv6(url.host)) return wrong(fmt::format("{} is not an IPv6 address", quoted(url.host)));
    port = authority.substr(close + 1);
    has_port = !port.empty();
    if (has_port && port.front() != ':') return wrong("after the ']' comes ':port' or nothing");
  } else {
    const std::size_t colon = authority.find(':');
    url.host = authority.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon);
    if (port.find(':', 1) != std::string_view::npos) {
      return wrong("an IPv6 address goes in brackets", "for example http://[::1]:8000");
    }
    const bool digits = url.host.find_first_not_of("0123456789.") == std::string::npos;
    if (!is_name(url.host) || (digits && !ipv4(url.host))) {
      return wrong(fmt::format("{} is not a host name or address", quoted(url.host)));
    }
  }
  if (has_port) {
    const std::optional<std::int64_t> number = parse_int(port.substr(1));
    if (!number || *number < 1 || *number > 65535) {
      return wrong(fmt::format("the port must be from 1 to 65535, not {}", quoted(port.substr(1))));
    }
    url.port = static_cast<std::uint16_t>(*number);
  }
  return url;
}

}  // namespace

Parsed<TargetUrl> read_url(std::string_view text) {
  if (text.starts_with("unix:")) return read_unix(text.substr(5));
  const std::size_t scheme_end = text.find("://");
  const std::string_view scheme = text.substr(0, scheme_end);
  const std::string_view rest =
      scheme_end == std::string_view::npos ? text : text.substr(scheme_end + 3);
  const std::size_t slash = rest.find_first_of("/?#");
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return wrong("holds a user name or password, which would end up in logs and ledgers",
                 "take it out and give the secret by --api-key-file, --api-key-env or --header");
  }
  if (scheme_end == std::string_view::npos) {
    return wrong(fmt::format("{} does not say how to reach the server", quoted(text)),
                 fmt::format("begin with http://, for example http://{}",
                             is_name(authority.substr(0, authority.find(':'))) ? authority
                                                                               : "127.0.0.1:8000"));
  }
  if (equal_ignoring_case(scheme, "https")) {
    return wrong("https comes with a later version; this one speaks plain http",
                 "use http://, through a local TLS proxy where the server insists on https");
  }
  if (!equal_ignoring_case(scheme, "http")) {
    return wrong(fmt::format("the scheme {} is unknown; this version knows http:// and unix:",
                             quoted(scheme)));
  }
  Parsed<TargetUrl> url = read_authority(authority);
  if (!url || slash == std::string_view::npos) return url;
  const Parsed<std::string> prefix = read_prefix(rest.substr(slash));
  if (!prefix) return Failed(prefix.error());
  url->prefix = *prefix;
  return url;
}

std::string show_url(const TargetUrl& url) {
  if (!url.socket_path.empty()) {
    return fmt::format("unix:{}{}{}", url.socket_path, url.prefix.empty() ? "" : ":", url.prefix);
  }
  const bool v6 = url.host.find(':') != std::string::npos;
  const std::string port = url.port == 80 ? std::string() : fmt::format(":{}", url.port);
  return fmt::format("http://{}{}{}{}{}", v6 ? "[" : "", url.host, v6 ? "]" : "", port, url.prefix);
}

bool is_private(const TargetUrl& url) {
  if (!url.socket_path.empty()) return true;
  if (const std::optional<Ipv4> address = ipv4(url.host)) return is_private(*address);
  if (const std::optional<Ipv6> address = ipv6(url.host)) return is_private(*address);
  std::string_view name = url.host;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.find('.') == std::string_view::npos) return true;
  for (const std::string_view suffix : {".local", ".localhost", ".internal"}) {
    if (name.size() > suffix.size() &&
        equal_ignoring_case(name.substr(name.size() - suffix.size()), suffix)) {
      return true;
    }
  }
  return false;
}

}  // namespace assay
