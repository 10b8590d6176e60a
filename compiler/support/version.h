// The release that this is, as programs print it and daemons tell it.
#pragma once

namespace hone {

inline constexpr char kVersion[] = "0.1.0";  // CMakeLists.txt, project(hone VERSION ...)

}  // namespace hone
