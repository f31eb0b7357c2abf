#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    areo_s3::fuzzing::wire::request(input);
});
