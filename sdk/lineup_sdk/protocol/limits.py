"""The numbers both ends of a wire must agree on (SPEC 2.1, 16). Sizes in bytes unless the name says otherwise."""

from __future__ import annotations

WIRE_VERSION = 1

MAX_DEPTH = 16
MAX_INTEGER = 2**53 - 1
MAX_WORKER_FRAME_BYTES = 64 * 1024  # worker to kernel
MAX_FRAME_BYTES = 1024 * 1024  # every other direction
MAX_BODY_BYTES = 48 * 1024  # a JSON body that has to reach a worker, as CBOR
MAX_BODY_DEPTH = 12
MAX_PROGRESS_DEPTH = 9  # of the data of a report: hosts see it seven levels deep, and a frame has sixteen
MAX_STATE_BYTES = 32 * 1024
CHUNK_BYTES = 256 * 1024  # of one part of a thing that is too big for a frame
UPLOAD_CHUNK_BYTES = 48 * 1024  # the same from a worker
WINDOW_BYTES = 1024 * 1024  # of an artifact that one request brings
MAX_PATCH_BYTES = MAX_BODY_BYTES  # of one change of a surface, as CBOR
MAX_SURFACE_BYTES = 4 * 1024 * 1024  # of a surface's state, as CBOR
MAX_ARTIFACT_BYTES = 16 * 1024 * 1024
MAX_TEXT_LENGTH = 16_384  # code points of one message of the person
MAX_LOG_TEXT_BYTES = 8 * 1024  # of one log.write
PROGRESS_PER_SECOND = 4
