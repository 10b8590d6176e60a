#include "tests/compiler/codegen/machine_code/x86_functions.h"

#include <array>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone::testing {
namespace {

template <class T>
T At(const void* vector, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(vector) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void Put(void* vector, int64_t i, T value) {
  std::memcpy(static_cast<char*>(vector) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// The products of neighbours, as many as fill 32 bits, added to `sum` modulo 2^32: of bytes and of words every product
// is exact.
template <class Left, class Right>
uint32_t AddProducts(uint32_t sum, const void* left, const void* right, int64_t i) {
  constexpr int64_t kGroup = 4 / sizeof(Left);
  for (int64_t l = 0; l < kGroup; ++l) {
    sum += static_cast<uint32_t>(static_cast<int32_t>(At<Left>(left, i * kGroup + l)) *
                                 static_cast<int32_t>(At<Right>(right, i * kGroup + l)));
  }
  return sum;
}

// VPDPBUSD, VPDPWSSD: (sums, left, right).
template <int kLanes, class Left, class Right>
void Dot(void* result, const void* const* args) {
  for (int64_t i = 0; i < kLanes; ++i)
    Put(result, i, AddProducts<Left, Right>(At<uint32_t>(args[0], i), args[1], args[2], i));
}
// PMADDWD: (left, right).
template <int kLanes>
void MultiplyAddWords(void* result, const void* const* args) {
  for (int64_t i = 0; i < kLanes; ++i) Put(result, i, AddProducts<int16_t, int16_t>(0, args[0], args[1], i));
}

float Flushed(float x) { return std::abs(x) < FLT_MIN ? std::copysign(0.0F, x) : x; }
float Bfloat16At(const void* vector, int64_t i) {
  const uint32_t bits = static_cast<uint32_t>(At<uint16_t>(vector, i)) << 16;
  return At<float>(&bits, 0);
}
// sum + a * b: one rounding, denormal numbers as zeros.
float MultiplyAdd(float sum, float a, float b) { return Flushed(std::fma(Flushed(a), Flushed(b), Flushed(sum))); }

// VDPBF16PS: (sums, left, right).
template <int kLanes>
void DotBfloat16(void* result, const void* const* args) {
  for (int64_t i = 0; i < kLanes; ++i) {
    float sum = At<float>(args[0], i);
    for (const int64_t at : {2 * i + 1, 2 * i})
      sum = MultiplyAdd(sum, Bfloat16At(args[1], at), Bfloat16At(args[2], at));
    Put(result, i, sum);
  }
}

// ---- Tile registers: SDM volume 1, chapter 18; volume 2, LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TDP*.

struct Tile {
  int64_t rows = 0, row_bytes = 0;
  std::array<std::array<uint8_t, kTileRowBytes>, kTileRows> data{};  // zeros beyond rows and row_bytes
};
// Of one thread.
struct TileState {
  bool in_use = false;
  std::array<Tile, kTileRegisters> tiles;
};
thread_local TileState tile_state;

std::mutex faults_lock;
std::vector<std::string> faults;
int states_in_use = 0;  // of all threads

template <class... Pieces>
void Fault(const Pieces&... pieces) {
  const std::lock_guard<std::mutex> guard(faults_lock);
  faults.push_back(absl::StrCat(pieces...));
}

// A thread that ends with registers in use has not released them.
struct EndOfThread {
  ~EndOfThread() {
    if (!tile_state.in_use) return;
    Fault("a thread ended with tile registers in use");
    const std::lock_guard<std::mutex> guard(faults_lock);
    --states_in_use;
  }
};

void UseTiles(bool in_use) {
  static thread_local EndOfThread end;
  const std::lock_guard<std::mutex> guard(faults_lock);
  states_in_use += static_cast<int>(in_use) - static_cast<int>(tile_state.in_use);
  tile_state = {.in_use = in_use};
}

// 64 bytes: palette, first row, the bytes of a row of each register in 16 bits from byte 16 on, its rows from byte 48
// on. All others are reserved, and the registers become zeros.
void LoadConfiguration(void*, const void* const* args) {
  const void* bytes = At<const void*>(args[0], 0);
  UseTiles(true);
  if (At<uint8_t>(bytes, 0) != 1) Fault("ldtilecfg: palette ", At<uint8_t>(bytes, 0));
  for (int64_t i = 1; i < 64; ++i) {
    const bool used = (i >= 16 && i < 16 + 2 * kTileRegisters) || (i >= 48 && i < 48 + kTileRegisters);
    if (!used && At<uint8_t>(bytes, i) != 0) Fault("ldtilecfg: reserved byte ", i, " is not 0");
  }
  for (int64_t r = 0; r < kTileRegisters; ++r) {
    Tile& tile = tile_state.tiles[static_cast<size_t>(r)];
    tile.row_bytes = At<uint16_t>(bytes, 8 + r);
    tile.rows = At<uint8_t>(bytes, 48 + r);
    if (tile.rows > kTileRows || tile.row_bytes > kTileRowBytes || (tile.rows == 0) != (tile.row_bytes == 0)) {
      Fault("ldtilecfg: ", tile.rows, " rows of ", tile.row_bytes, " bytes in register ", r);
      tile = {};
    }
  }
}
void ReleaseTiles(void*, const void* const*) { UseTiles(false); }

// The register whose number argument i is.
Tile& TileOf(const char* instruction, const void* const* args, int i) {
  static thread_local Tile none;
  const int64_t number = At<uint8_t>(args[i], 0);
  const bool there = number < kTileRegisters && tile_state.tiles[static_cast<size_t>(number)].rows != 0;
  if (there) return tile_state.tiles[static_cast<size_t>(number)];
  Fault(instruction, ": register ", number, " is not configured");
  return none = {};
}

void ZeroTile(void*, const void* const* args) { TileOf("tilezero", args, 0).data = {}; }

// (register, address, bytes from row to row)
void LoadTile(void*, const void* const* args) {
  Tile& tile = TileOf("tileloadd", args, 0);
  tile.data = {};
  for (int64_t row = 0; row < tile.rows; ++row) {
    const char* from = At<const char*>(args[1], 0) + row * At<int64_t>(args[2], 0);
    std::memcpy(tile.data[static_cast<size_t>(row)].data(), from, static_cast<size_t>(tile.row_bytes));
  }
}
void StoreTile(void*, const void* const* args) {
  const Tile& tile = TileOf("tilestored", args, 0);
  for (int64_t row = 0; row < tile.rows; ++row) {
    char* to = At<char*>(args[1], 0) + row * At<int64_t>(args[2], 0);
    std::memcpy(to, tile.data[static_cast<size_t>(row)].data(), static_cast<size_t>(tile.row_bytes));
  }
}

// (sums, left, right), three registers: a row of the left one has an element of 32 bits for each row of the right one.
struct TileProduct {
  Tile &sums, &left, &right;

  TileProduct(const char* name, const void* const* args)
      : sums(TileOf(name, args, 0)), left(TileOf(name, args, 1)), right(TileOf(name, args, 2)) {
    if (&sums == &left || &sums == &right || &left == &right) Fault(name, ": a register twice");
    if (sums.rows != left.rows || sums.row_bytes != right.row_bytes || left.row_bytes != 4 * right.rows ||
        sums.row_bytes % 4 != 0) {
      Fault(name, ": sums of ", sums.rows, " x ", sums.row_bytes, " bytes, left ", left.rows, " x ", left.row_bytes,
            ", right ", right.rows, " x ", right.row_bytes);
    }
  }
  // Calls f(sum, m, n) for each element of the sums and sets it to the result.
  template <class T, class F>
  void ForEachSum(const F& f) {
    for (int64_t m = 0; m < sums.rows; ++m) {
      void* row = sums.data[static_cast<size_t>(m)].data();
      for (int64_t n = 0; n < sums.row_bytes / 4; ++n) Put(row, n, f(At<T>(row, n), m, n));
    }
  }
  const void* LeftAt(int64_t m, int64_t k) const { return left.data[static_cast<size_t>(m)].data() + 4 * k; }
  const void* RightAt(int64_t k, int64_t n) const { return right.data[static_cast<size_t>(k)].data() + 4 * n; }
};

template <class Left, class Right>
void DotTiles(void*, const void* const* args) {
  TileProduct product("tdpb**d", args);
  product.ForEachSum<uint32_t>([&](uint32_t sum, int64_t m, int64_t n) {
    for (int64_t k = 0; k < product.right.rows; ++k)
      sum = AddProducts<Left, Right>(sum, product.LeftAt(m, k), product.RightAt(k, n), 0);
    return sum;
  });
}

void DotBfloat16Tiles(void*, const void* const* args) {
  TileProduct product("tdpbf16ps", args);
  product.ForEachSum<float>([&](float sum, int64_t m, int64_t n) {
    std::array<float, 2> parts{};  // of even and of odd elements
    for (int64_t k = 0; k < product.right.rows; ++k) {
      for (int64_t l = 0; l < 2; ++l) {
        float& part = parts[static_cast<size_t>(l)];
        part = MultiplyAdd(part, Bfloat16At(product.LeftAt(m, k), l), Bfloat16At(product.RightAt(k, n), l));
      }
    }
    return Flushed(Flushed(sum) + Flushed(parts[0] + parts[1]));
  });
}

constexpr std::pair<std::string_view, X86Body> kBodies[] = {
    {"llvm.x86.avx2.pmadd.wd", MultiplyAddWords<8>},
    {"llvm.x86.avx512.pmaddw.d.512", MultiplyAddWords<16>},
    {"llvm.x86.avx512.vpdpbusd.128", Dot<4, uint8_t, int8_t>},
    {"llvm.x86.avx512.vpdpbusd.256", Dot<8, uint8_t, int8_t>},
    {"llvm.x86.avx512.vpdpbusd.512", Dot<16, uint8_t, int8_t>},
    {"llvm.x86.avx512.vpdpwssd.128", Dot<4, int16_t, int16_t>},
    {"llvm.x86.avx512.vpdpwssd.256", Dot<8, int16_t, int16_t>},
    {"llvm.x86.avx512.vpdpwssd.512", Dot<16, int16_t, int16_t>},
    {"llvm.x86.avx512bf16.dpbf16ps.128", DotBfloat16<4>},
    {"llvm.x86.avx512bf16.dpbf16ps.256", DotBfloat16<8>},
    {"llvm.x86.avx512bf16.dpbf16ps.512", DotBfloat16<16>},
    {"llvm.x86.ldtilecfg", LoadConfiguration},
    {"llvm.x86.tilerelease", ReleaseTiles},
    {"llvm.x86.tilezero", ZeroTile},
    {"llvm.x86.tileloadd64", LoadTile},
    {"llvm.x86.tilestored64", StoreTile},
    {"llvm.x86.tdpbusd", DotTiles<uint8_t, int8_t>},
    {"llvm.x86.tdpbsud", DotTiles<int8_t, uint8_t>},
    {"llvm.x86.tdpbssd", DotTiles<int8_t, int8_t>},
    {"llvm.x86.tdpbuud", DotTiles<uint8_t, uint8_t>},
    {"llvm.x86.tdpbf16ps", DotBfloat16Tiles},
};

}  // namespace

X86Body FindX86Body(std::string_view function) {
  for (const auto& [name, body] : kBodies) {
    if (name == function) return body;
  }
  return nullptr;
}

std::vector<std::string> TakeX86Faults() {
  const std::lock_guard<std::mutex> guard(faults_lock);
  std::vector<std::string> taken = std::exchange(faults, {});
  if (states_in_use != 0) taken.push_back(absl::StrCat("tile registers of ", states_in_use, " threads are in use"));
  return taken;
}

}  // namespace hone::testing
