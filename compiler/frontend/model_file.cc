#include "compiler/frontend/model_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace hone {

ModelFile::ModelFile(int descriptor) : descriptor_(descriptor), thread_([this] { DigestPieces(); }) {}

ModelFile::~ModelFile() {
  EndDigest();
  ::close(descriptor_);
}

bool ModelFile::Next(const void** data, int* size) {
  if (backed_up_ > 0) {
    const Piece& last = pieces_[(read_ - 1) % kPieces];
    *data = last.memory.get() + (last.size - static_cast<size_t>(backed_up_));
    *size = backed_up_;
    backed_up_ = 0;
    return true;
  }
  Piece& piece = pieces_[read_ % kPieces];
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return read_ - digested_ < kPieces; });
  }
  if (piece.memory == nullptr) piece.memory = std::make_unique_for_overwrite<char[]>(kPieceBytes);
  ssize_t got;
  do got = ::read(descriptor_, piece.memory.get(), kPieceBytes);
  while (got < 0 && errno == EINTR);
  if (got < 0) error_ = errno;
  if (got <= 0) return false;
  piece.size = static_cast<size_t>(got);
  bytes_ += got;
  {
    const std::lock_guard lock(mutex_);
    ++read_;
  }
  changed_.notify_all();
  *data = piece.memory.get();
  *size = static_cast<int>(got);
  return true;
}

bool ModelFile::Skip(int count) {
  while (count > 0) {
    const void* data;
    int size;
    if (!Next(&data, &size)) return false;
    if (size > count) BackUp(size - count);
    count -= std::min(size, count);
  }
  return true;
}

void ModelFile::DigestPieces() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return digested_ < read_ || ended_; });
    if (digested_ == read_) return;
    const Piece& piece = pieces_[digested_ % kPieces];
    lock.unlock();
    digest_.Add({piece.memory.get(), piece.size});
    lock.lock();
    ++digested_;
    changed_.notify_all();
  }
}

void ModelFile::EndDigest() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string ModelFile::Digest() {
  EndDigest();
  return digest_.Finish();
}

}  // namespace hone
