"""Serves a model file on loopback with llama.cpp's own server; run by the interpreter that has xllamacpp.

Usage: serve.py MODEL TEMPLATE CONTEXT. Prints its address, and ends with its standard input. One thread: two collapse on a busy
machine. Small batches, since a cancel takes effect between two of them.
"""

import sys
from pathlib import Path

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.chat_template = Path(sys.argv[2]).read_text("utf-8")
params.use_jinja = True
params.n_ctx = int(sys.argv[3])
params.n_parallel = 1
params.n_batch = params.n_ubatch = 128
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.sampling.temp = 0.0
params.hostnames = ["127.0.0.1"]
params.port = 0
params.endpoint_slots = True
server = xllamacpp.Server(params)
sys.stdout.write(f"READY {server.listening_address}\n")
sys.stdout.flush()
sys.stdin.read()
