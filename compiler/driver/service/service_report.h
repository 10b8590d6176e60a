// The service as people and programs read it: workers, the whole on one page, and why a job stands where it does.
#pragma once

#include <string>

#include "compiler/driver/service_options.h"
#include "hone/v1/tune.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace hone {

// A line, and one more for each thing to know: what it waits for, what its sandbox lacks.
std::string WorkerText(const v1::WorkerInfo& worker);
nlohmann::ordered_json WorkerJson(const v1::WorkerInfo& worker);

// Daemon, jobs that wait or run, workers.
std::string StatusText(const v1::ServiceStatus& status, const ServiceOptions& service);
nlohmann::ordered_json StatusJson(const v1::ServiceStatus& status);

// What holds the job up, where its time went, who works on it and who does not fit, and what it would take to its end.
std::string ExplanationText(const v1::JobExplanation& explanation, const ServiceOptions& service);
nlohmann::ordered_json ExplanationJson(const v1::JobExplanation& explanation);

}  // namespace hone
