#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    areo_wire::fuzzing::hello_fields(input);
});
