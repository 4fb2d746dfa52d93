//! Every message of the macros, as the compiler shows it.

#[test]
fn mistakes_are_reported_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
