# Bugs put into the dispatcher and the workers' sessions on purpose: the simulation (or the rules, where it says so) must
# find every one, or it would not find a real one. The program planted_bugs is the tests with planted copies of the source
# files in place of the true ones. A copy has all bugs of its file, and HONE_PLANTED_BUG says which of them a run has: with
# one the tests have to fail, with none they have to pass.

# What most of the planted files include, compiled once.
add_executable(planted_bug_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/headers.cc)
target_link_libraries(planted_bug_headers PRIVATE hone_dispatch)
target_compile_options(planted_bug_headers PRIVATE ${HONE_TEST_OPTIONS})
target_precompile_headers(planted_bug_headers PRIVATE ${HONE_COMMON_HEADERS}
                           "${PROJECT_SOURCE_DIR}/tuner/dispatch/dispatcher_impl.h")

# Sets `result` to `text` with a choice in place of `from`: `to` where the bug is planted, `from` where it is not. Sets it
# to "" where `from` does not stand in the text exactly once.
function(choose_at_run_time result text name from to)
  set(before "")
  set(chosen "${from}")
  set(after "")
  if(from MATCHES "^(.*)<<(.*)>>(.*)$")
    set(before "${CMAKE_MATCH_1}")
    set(chosen "${CMAKE_MATCH_2}")
    set(after "${CMAKE_MATCH_3}")
  endif()
  set(whole "${before}${chosen}${after}")
  string(FIND "${text}" "${whole}" first)
  string(FIND "${text}" "${whole}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    set(${result} "" PARENT_SCOPE)
    return()
  endif()
  if(chosen MATCHES "[;}]$")
    set(choice "if (Planted(\"${name}\")) {\n${to}\n} else {\n${chosen}\n}")
  else()
    set(choice "(Planted(\"${name}\") ? (${to}) : (${chosen}))")
  endif()
  string(REPLACE "${whole}" "${before}${choice}${after}" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

#   planted_bug(NAME FILE FILTER [[what stands there]] [[what takes its place]] [SEED NUMBER])
#
# FILE: of tuner/dispatch, or worker/... from the root. What stands there is whole statements, where it ends with `;` or `}`,
# or else an expression, and stands in the file once; of a longer text that does, `<<` and `>>` hold the part that is
# replaced. Where a bug takes several replacements, more such pairs of texts follow. No bug touches what another one
# replaces. SEED: the simulation begins there, shortly before the first world that finds the bug, where that saves half a
# minute; the worlds behind it are played as long as none does.
function(planted_bug name file filter)
  if(NOT file MATCHES "^worker/")
    set(file tuner/dispatch/${file})
  endif()
  if(NOT file IN_LIST planted_files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
    file(READ ${PROJECT_SOURCE_DIR}/${file} text_of_${file})
    list(APPEND planted_files ${file})
    set(planted_files "${planted_files}" PARENT_SCOPE)
  endif()
  set(text "${text_of_${file}}")
  set(seed 0)
  math(EXPR last "${ARGC} - 1")
  foreach(i RANGE 3 ${last} 2)
    math(EXPR next "${i} + 1")
    if("${ARGV${i}}" STREQUAL "SEED")
      set(seed ${ARGV${next}})
      continue()
    endif()
    choose_at_run_time(text "${text}" ${name} "${ARGV${i}}" "${ARGV${next}}")
    if(text STREQUAL "")
      message(WARNING "tests/tuner/dispatch/simulation/planted_bugs.cmake: ${name}: `${ARGV${i}}` does not stand in ${file} once")
      add_test(NAME PlantedBug.${name} COMMAND ${CMAKE_COMMAND} -E false)
      set(text_of_${file} "${text_of_${file}}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(text_of_${file} "${text}" PARENT_SCOPE)
  list(APPEND planted_filters "${filter}")
  set(planted_filters "${planted_filters}" PARENT_SCOPE)
  add_test(NAME PlantedBug.${name}
           COMMAND ${CMAKE_COMMAND} -E env HONE_PLANTED_BUG=${name} HONE_FIRST_SEED=${seed}
                   sh -c "ulimit -c 0; ! \"$0\" --gtest_filter='${filter}' --gtest_fail_fast --gtest_brief=1 >/dev/null 2>&1"
                   $<TARGET_FILE:planted_bugs>)
  set_tests_properties(PlantedBug.${name} PROPERTIES TIMEOUT 120)
endfunction()

set(planted_files)
set(planted_filters)
set(simulation "*DispatcherSim*")
planted_bug(ack_before_commit rules/result_rules.cc ${simulation}
  [[becoming_durable.insert(token);]]
  [[worker.verdicts[report] = v1::REPORT_REFUSAL_UNSPECIFIED;]])
planted_bug(told_before_durable rules/sync_rules.cc ${simulation}
  [[if (!trial.granted) continue;]]
  [[]])
planted_bug(stale_attempt_counts rules/result_rules.cc ${simulation}
  [[TokenOf(trial->row) == token]]
  [[true]]
  [[!current || !Holds(worker, result.id(), trial->row)]]
  [[!current]])
planted_bug(anybody_may_report rules/result_rules.cc ${simulation}
  [[id.secret() == row.secret]]
  [[true]])
planted_bug(a_verdict_names_another_secret state/lease_table.cc ${simulation}
  [[id.set_secret(report.secret);]]
  [[]])
planted_bug(who_guesses_is_acknowledged rules/result_rules.cc ${simulation}
  [[Tell(worker, std::move(report), <<why>>);]]
  [[v1::REPORT_REFUSAL_UNSPECIFIED]])
planted_bug(anybody_may_say_what_was_built rules/build_rules.cc ${simulation}
  [[result.id().secret() != build->secret]]
  [[false]])
planted_bug(build_leaks_with_its_builder rules/worker_ends.cc ${simulation}
  [[for (const uint64_t build : lent) TakeBackBuild(*builds.Find(build));]]
  [[]])
planted_bug(builders_die_without_end rules/build_rules.cc ${simulation}
  [[IsQuarantined(build)]]
  [[false]])
planted_bug(lease_leaks_with_its_worker rules/worker_ends.cc ${simulation}
  [[for (const uint64_t trial : held) TakeBack(*leases.Find(trial), true);]]
  [[]])
planted_bug(attempts_without_end rules/lease_rules.cc ${simulation}
  [[static_cast<int>(trial.row.attempt) < options.max_attempts]]
  [[true]])
planted_bug(slower_champion_is_crowned rules/result_rules.cc ${simulation}
  [[!(ratio < below) || !sure]]
  [[!sure]])
planted_bug(same_request_makes_two_jobs rules/job_rules.cc ${simulation}
  [[job_requests.Find(event.tenant.id, request.request_id())]]
  [[std::optional<uint64_t>()]])
planted_bug(budget_forgets_what_is_out rules/job_ends.cc ${simulation}
  [[(job.verified + job.failed)) - <<coming>>;]]
  [[0 * coming]])
planted_bug(known_candidate_is_measured_again rules/search_rules.cc ${simulation}
  [[candidate.trace().empty() || key.Knows(candidate.trace())]]
  [[candidate.trace().empty()]])
planted_bug(hostile_times_are_believed rules/outcome_check.cc ${simulation}
  [[if (<<!fault.empty()>>) {]]
  [[false]])
planted_bug(a_lost_worker_changes_nothing state/fleet_index.cc ${simulation}
  [[workers_.erase(found);
  <<changed_tenants_.insert(pool->kind.tenant);>>]]
  [[]])
planted_bug(restart_counts_as_an_attempt rules/sync_rules.cc "Leases.*"
  [[leases.Adopt(*trial, worker.id)]]
  [[leases.Requeue(*trial, now, now)]])
planted_bug(anybody_gives_back rules/lease_rules.cc "Leases.*"
  [[if (TokenOf(id) != TokenOf(trial->row) || !Holds(worker, id, trial->row)) return;]]
  [[]])
planted_bug(a_lost_network_is_a_lost_worker rules/worker_ends.cc "Leases.*"
  [[if (trial != nullptr && trial->row.lost_workers > 0) --trial->row.lost_workers;]]
  [[]])
planted_bug(a_paused_job_is_lent settle.cc "Paused.*"
  [[!job.ended && !job.row.request.paused() && job.loaded()]]
  [[!job.ended && job.loaded()]])
planted_bug(lost_worker_is_not_counted rules/lease_rules.cc "Leases.*"
  [[if (worker_was_lost && trial.under_work()) ++trial.row.lost_workers;]]
  [[]])
planted_bug(a_winner_has_no_record rules/result_rules.cc "Duels.*"
  [[    <<writes.push_back(kept);>>]]
  [[]]
  [[Gained(key);
  <<writes.push_back(kept);>>]]
  [[]])
planted_bug(priority_is_ignored state/job_state.cc "Jobs.*"
  [[std::exp2(row.request.priority())]]
  [[1]])
planted_bug(weights_are_ignored state/tenant_accounts.cc "Tenants.*"
  [[charged += seconds / weight(tenant);]]
  [[charged += seconds;]])
planted_bug(a_late_tenant_gets_everything state/tenant_accounts.cc "Tenants.*"
  [[if (!open_.empty()) charged = std::max(charged, open_.begin()->first);]]
  [[]])
planted_bug(a_job_ends_before_its_parts rules/job_ends.cc ${simulation}
  [[!WaitsForTrials(job) && job.open_parts.empty()]]
  [[!WaitsForTrials(job)]])
planted_bug(a_stop_leaves_the_parts_running rules/job_rules.cc ${simulation}
  [[for (Job* job : <<WithParts(*whole)>>) {]]
  [[std::vector<Job*>{whole}]])
planted_bug(a_restart_forgets_the_parts rules/job_rules.cc ${simulation}
  [[if (whole != jobs.end()) whole->second.open_parts.insert(id);]]
  [[]])
planted_bug(the_default_gives_way_to_noise rules/result_rules.cc "Duels.*"
  [[DefaultIsBest(job, key) ? <<1 - options.default_margin>> : 1]]
  [[1]])
planted_bug(the_first_result_is_the_best rules/result_rules.cc "FirstResults.*"
  [[key.best_record() == 0 && !options.confirm_first]]
  [[key.best_record() == 0]])
planted_bug(what_a_sandbox_lacks_is_not_noted rules/result_rules.cc "Leases.*"
  [[NoteMissingLayers(worker, job);]]
  [[]])
planted_bug(a_fault_of_the_machine_is_forgotten rules/result_rules.cc "Jobs.*"
  [[job.worker_fault = outcome.kind() == v1::OUTCOME_INFRA ? outcome.detail() : "";]]
  [[]])
planted_bug(an_unlikely_ratio_is_believed rules/result_rules.cc "Duels.*"
  [[if (!expected || !possible) return;]]
  [[]])
planted_bug(who_measured_first_confirms rules/lease_rules.cc "FirstResults.*"
  [[!IsKeptFrom(trial, worker)]]
  [[trial.kept_from.until >= 0]])
planted_bug(a_restart_forgets_who_measured state/key_state.cc "FirstResults.*"
  [[of_trace.measured_by = claim.who;]]
  [[]])
planted_bug(a_lost_confirmation_is_anybodys settle.cc "FirstResults.*"
  [[if (trial.row.duel) KeepFromWhoMeasured(trial, KeyOf(trial), jobs.at(trial.job));]]
  [[]])
planted_bug(who_failed_at_it_has_it_again rules/result_rules.cc "Leases.*"
  [[kind == v1::OUTCOME_INFRA && trial.kept_from.until <= now]]
  [[false]])
planted_bug(a_faulty_worker_has_all_it_wants rules/lease_rules.cc "Workers.*"
  [[worker.faults < options.faulty_after]]
  [[worker.faults >= 0]])
planted_bug(a_faulty_worker_is_never_well_again rules/result_rules.cc "Workers.*"
  [[worker.faults = kind == v1::OUTCOME_INFRA ? worker.faults + 1 : 0;]]
  [[worker.faults += kind == v1::OUTCOME_INFRA;]])
planted_bug(a_rest_has_no_end settle.cc "Workers.*"
  [[if (worker.rests_until > now) due = std::min(due, worker.rests_until);]]
  [[]])
planted_bug(a_back_off_has_no_end settle.cc "Leases.*"
  [[if (trial.not_before <= now) leases.EndDelay(trial);]]
  [[]])
planted_bug(a_restart_forgets_what_was_lent rules/job_rules.cc "Leases.*"
  [[leases.AddOrphan(std::move(trial), now + Micros{options.lease_ms} * 1000);]]
  [[]])
planted_bug(a_commit_keeps_one_promise_of_many dispatcher.cc ${simulation}
  [[step_after.push_back(std::move(after));]]
  [[step_after = {std::move(after)};]])
planted_bug(a_repeated_submit_does_not_wait_for_the_disk rules/job_rules.cc ${simulation}
  [[return CommitThen({}, [this, to = event.to, reply] { ReplyNow(to, reply); });]]
  [[return ReplyNow(event.to, reply);]] SEED 220)
planted_bug(a_stop_is_promised_at_once rules/job_rules.cc ${simulation}
  [[<<CommitThen(std::move(writes), [this, to = event.to, snapshot = SnapshotOf(*whole, true)] { ReplyNow(to, snapshot); });>>
}

void Dispatcher::Impl::On(const PauseJob& event) {]]
  [[CommitThen(std::move(writes), nullptr);
    ReplyNow(event.to, SnapshotOf(*whole, true));]])
planted_bug(a_forgery_takes_the_true_result_along worker/agent/session/work_queue.cc ${simulation}
  [[found == results_.end() || found->second.id().secret() != id.secret()]]
  [[found == results_.end()]] SEED 120)
planted_bug(an_unknown_session_drops_its_results worker/agent/session/work_queue.cc ${simulation}
  [[queued_.clear();
  <<builds_.ForgetLeases();>>]]
  [[results_.clear();
    builds_.ForgetLeases();]])
planted_bug(a_repeated_answer_is_worked_on_again worker/agent/session/work_queue.cc ${simulation}
  [[if (held_.count(key) > 0 || results_.count(key) > 0) continue;]]
  [[]])
planted_bug(a_call_that_failed_is_waited_for worker/agent/session/session_rules.cc ${simulation}
  [[answered->reply = std::move(reply);]]
  [[if (reply.ok()) answered->reply = std::move(reply);]])
planted_bug(a_builder_takes_a_repeated_lease_again worker/agent/session/build_queue.cc ${simulation}
  [[if (held_.count(key) != 0 || results_.count(key) != 0) continue;]]
  [[]])
planted_bug(a_liar_confirms rules/result_rules.cc ${simulation}
  [[std::max(again, other_us)]]
  [[again]])
planted_bug(a_liar_who_measured_first_is_believed rules/result_rules.cc ${simulation}
  [[other_us == 0 && borne_out]]
  [[borne_out]])
planted_bug(a_liar_decides_a_duel rules/result_rules.cc ${simulation}
  [[std::max(key.best_us() * ratio, other_us)]]
  [[key.best_us() * ratio]])
planted_bug(a_second_name_confirms rules/result_rules.cc "FirstResults.*"
  [[AnotherPrincipalFits(measured_by.principal, job)]]
  [[false]])
planted_bug(a_restart_forgets_whose_name_it_was events/reporter.cc "FirstResults.*"
  [[if (line_feed == std::string::npos) return {.principal = "", .worker = text};]]
  [[if (line_feed != 0) return {.principal = "", .worker = text.substr(line_feed + 1)};]])
planted_bug(a_second_name_bears_a_time_out state/key_state.cc "Doubts.*"
  [[return other != nullptr ? other : first([&](const Reporter& of) { return of.worker != who.worker; });]]
  [[other = first([&](const Reporter& of) { return of.worker != who.worker; });
  return other;]])
planted_bug(a_second_name_agrees_on_facts state/device_facts.cc "DeviceFacts.*"
  [[return principals.size() > 1 ? by_principal : by_worker;]]
  [[return by_worker;]])
planted_bug(a_lost_name_is_anybodys rules/worker_ends.cc "Workers.*"
  [[lost_names.Add(now, worker.tenant, info.name(), worker.reporter->principal, worker.hello.name_key());]]
  [[]])
planted_bug(every_tenant_is_looked_at_for_each_lease rules/lease_rules.cc "Scale.*"
  [[for (const auto& [charged, tenant] : pool.ready_tenants) {
    ++counters.looked_at;
    if (const uint64_t trial = NextTrialOfTenant(pool.tenants.at(tenant), worker, kept_away)) return trial;
  }]]
  [[ByCharge order;
    for (const auto& [tenant, fitting] : pool.tenants) {
      ++counters.looked_at;
      if (fitting.ready_at.has_value()) order.emplace(*fitting.ready_at, tenant);
    }
    for (const auto& [charged, tenant] : order) {
      ++counters.looked_at;
      if (const uint64_t trial = NextTrialOfTenant(pool.tenants.at(tenant), worker, kept_away)) return trial;
    }]])
planted_bug(every_task_is_looked_at_after_each_event rules/search_rules.cc "Scale.*"
  [[queued + asked >= enough]]
  [[queued + asked < 0]])

# Each file with all its bugs.
set(planted_sources)
foreach(file ${planted_files})
  set(planted ${CMAKE_CURRENT_BINARY_DIR}/planted_bugs/${file})
  file(CONFIGURE OUTPUT ${planted} CONTENT "#include \"tests/tuner/dispatch/simulation/planted.h\"\n${text_of_${file}}" @ONLY)
  list(APPEND planted_sources ${planted})
endforeach()
list(JOIN planted_files "|" true_files)
add_executable(planted_bugs ${planted_sources}
               "$<FILTER:$<TARGET_OBJECTS:tuner_dispatch_tests>,EXCLUDE,/(${true_files})>")
target_link_libraries(planted_bugs PRIVATE hone_dispatch hone_log GTest::gmock GTest::gtest_main)
# Of two definitions the first counts: the planted one. Where sources are joined, the true one is in an object of others.
target_link_options(planted_bugs PRIVATE -Wl,-z,muldefs)
hone_as_test(planted_bugs planted_bug_headers)
hone_join_sources(planted_bugs)

# Without a bug all tests pass by which the bugs are found, a few worlds of the simulation among them.
list(REMOVE_DUPLICATES planted_filters)
list(JOIN planted_filters ":" planted_filters)
add_test(NAME PlantedBug.WithoutOneTheTestsPass COMMAND planted_bugs --gtest_filter=${planted_filters} --gtest_brief=1)
set_tests_properties(PlantedBug.WithoutOneTheTestsPass PROPERTIES TIMEOUT 120 ENVIRONMENT HONE_SEEDS=20)
