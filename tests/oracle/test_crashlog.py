"""What is read from the output of a process that died."""

from reducer.oracle.crashlog import Capture, fatal_message

CHECK = """I1130 13:07:47.100000    3663 noise.cc:1] hello
F1130 13:07:47.123456    3663 async_slice_util.cc:605] Check failed: a % b == 0 (1 vs. 0) Not a multiple.
second line of the message
*** Check failure stack trace: ***
    @     0x7f67142a8eec  (unknown)
*** SIGABRT received by PID 3663 (TID 3663) on cpu 1, si_code=-6, from PID 3663; stack trace: ***
PC: @     0x7f67142a8eec  (unknown)  (unknown)
E1130 13:07:47.303590    3663 coredump_hook.cc:310] RAW: Remote crash data gathering hook invoked.
"""

STACK = """I1130 13:07:47.100000    3663 noise.cc:1] hello
*** SIGSEGV (@(nil)), si_code=1, see go/stacktraces#s15 received by PID 2952 (TID 2952) on cpu 1; stack trace: ***
PC: @     0x1500  (unknown)  (unknown)
    @     0x1111       1904  FailureSignalHandler()
    @     0x9f00  (unknown)  (unknown)
    @     0x1500         32  (unknown)
    @     0x8000        800  xla::Shape::layout()
    @     0x9000  (unknown)  PyObject_Vectorcall
    @ ... and at least 2 more frames
https://symbolize.stripped_domain/r/?trace=b8800000101,7f4c7d975dc4&map=
E1130 13:07:47.303590    3663 coredump_hook.cc:310] RAW: Remote crash data gathering hook invoked.
"""


def test_the_last_fatal_line_with_what_belongs_to_it():
    assert fatal_message(CHECK) == (
        "async_slice_util.cc:605] Check failed: a % b == 0 (1 vs. 0) Not a multiple.\nsecond line of the message"
    )
    assert fatal_message(CHECK + CHECK.replace("605", "606")).startswith("async_slice_util.cc:606]")


def test_a_stack_report_without_addresses():
    assert fatal_message(STACK, (0x1000, 0x2000)) == (
        "*** SIGSEGV, si_code=1\n"
        "PC: @ libtpu+0x500\n"
        "    @ libtpu+0x500\n"
        "    @ xla::Shape::layout()\n"
        "    @ PyObject_Vectorcall\n"
        "    @ ... and at least 2 more frames"
    )
    assert "libtpu" not in fatal_message(STACK)


def test_a_log_without_either_keeps_its_end():
    assert fatal_message("a\nb\n") == "a\nb"
    assert fatal_message("") == ""
    assert fatal_message("x" * 10_000) == "x" * 2000


def test_a_capture_is_bounded_and_says_so():
    capture = Capture(head=10, tail=100)
    for n in range(1000):
        capture.add(f"line {n}\n".encode())
    text = capture.text()
    assert text.startswith("line 0\nlin")
    assert text.endswith("line 999\n")
    assert "bytes left out" in text
    assert len(text) < 200
    capture.clear()
    assert capture.text() == ""
    capture.add(b"\xff\xfe")
    assert capture.text() == "\\xff\\xfe"


def test_one_huge_write_is_bounded():
    capture = Capture(head=10, tail=100)
    for _ in range(3):
        capture.add(b"x" * 10_000)
    assert len(capture.text()) <= 10_200
