#All tests that need a PostgreSQL server are one test of ctest's, so that one server serves them.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/database/postgres/*.cc
     ${CMAKE_CURRENT_SOURCE_DIR}/database/store_conformance_*.cc)
add_executable(database_postgres_tests ${sources})
target_include_directories(database_postgres_tests PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(database_postgres_tests PRIVATE hone_database GTest::gmock GTest::gtest_main)
hone_as_test(database_postgres_tests)
hone_join_sources(database_postgres_tests)
add_test(NAME Postgres COMMAND database_postgres_tests)
set_tests_properties(Postgres PROPERTIES TIMEOUT 600 LABELS fault SKIP_REGULAR_EXPRESSION "no PostgreSQL server to test with")
