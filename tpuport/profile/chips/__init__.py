"""What a TPU that is not attached would make of a program: libtpu's own compiler, run ahead of time on the CPU.

`specs` are the chips, `compiler` compiles one program, `worker` is a process that does, `pool` runs several of them
and keeps their results, `hlo` reads the compiler's cost estimates out of the optimised program.
"""
