// A CUDA of two devices that does nothing, for a torch that was built without one.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {
constexpr at::DeviceIndex kDevices = 2;
thread_local at::DeviceIndex current = 0;
thread_local c10::StreamId streams[kDevices] = {0, 0};
std::atomic<c10::StreamId> last_stream{0};

at::DeviceIndex exchange(at::DeviceIndex index) {
  TORCH_CHECK(index < kDevices, "CUDA error: invalid device ordinal");
  auto before = current;
  if (index >= 0) current = index;
  return before;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  at::DeviceType type() const override { return at::kCUDA; }
  at::Device exchangeDevice(at::Device d) const override { return {at::kCUDA, exchange(d.index())}; }
  at::Device getDevice() const override { return {at::kCUDA, current}; }
  void setDevice(at::Device d) const override { exchange(d.index()); }
  void uncheckedSetDevice(at::Device d) const noexcept override { if (d.index() >= 0 && d.index() < kDevices) current = d.index(); }
  static at::DeviceIndex index_of(at::Device d) { return d.has_index() ? d.index() : current; }
  c10::Stream stream(at::DeviceIndex i) const { return c10::Stream(c10::Stream::UNSAFE, {at::kCUDA, i}, streams[i]); }
  c10::Stream getStream(at::Device d) const override { return stream(index_of(d)); }
  c10::Stream getDefaultStream(at::Device d) const override { return c10::Stream(c10::Stream::DEFAULT, {at::kCUDA, index_of(d)}); }
  c10::Stream getNewStream(at::Device d, int) const override {
    return c10::Stream(c10::Stream::UNSAFE, {at::kCUDA, index_of(d)}, ++last_stream);
  }
  c10::Stream getStreamFromGlobalPool(at::Device d, bool) const override { return getNewStream(d, 0); }
  c10::Stream exchangeStream(c10::Stream s) const override {
    auto before = stream(s.device_index());
    streams[s.device_index()] = s.id();
    return before;
  }
  void record(void** event, const c10::Stream&, const at::DeviceIndex, const c10::EventFlag) const override { *event = const_cast<Guard*>(this); }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const at::DeviceIndex) const noexcept override {}
  at::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const at::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  double elapsedTime(void*, void*, const at::DeviceIndex) const override { return 1.0; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)
} // namespace

namespace at {
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return kDevices; }
  DeviceIndex current_device() const override { return current; }
  void setCurrentDevice(DeviceIndex i) const override { exchange(i); }
  DeviceIndex getCurrentDevice() const override { return current; }
  DeviceIndex exchangeDevice(DeviceIndex i) const override { return exchange(i); }
  DeviceIndex maybeExchangeDevice(DeviceIndex i) const override { return exchange(i); }
  int getNumGPUs() const override { return kDevices; }
  Generator getNewGenerator(DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  const Generator& getDefaultGenerator(DeviceIndex i) const override {
    static Generator all[kDevices] = {at::detail::createCPUGenerator(), at::detail::createCPUGenerator()};
    return all[i < 0 ? current : i];
  }
  Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  void deviceSynchronize(DeviceIndex) const override {}
};
REGISTER_CUDA_HOOKS(CUDAHooks);
} // namespace at
