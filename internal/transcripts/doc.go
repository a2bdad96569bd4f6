// Package transcripts keeps copies of the claude CLI's conversations in an archive, so that a conversation
// survives its host and can be continued on another.
//
//	             Restore: replaces a missing or older local file, completely or not at all
//	           +---------------------------------------------------------------+
//	           v                                                               |
//	local transcript -- Save, Watch: new lines, compressed ----> SESSION/00000001-WRITER.jsonl.zst
//	                                                             SESSION/00000002-WRITER.jsonl.zst
//
// # What is archived
//
// A transcript is a file of JSON lines. The CLI only appends to it. The archive contains complete lines: a line
// that is being written follows with the next save. A restored transcript therefore always ends with a complete
// line. The CLI would skip an incomplete one.
//
// # What counts as newer
//
// If one copy continues another, it is newer. If two copies diverge, their lengths do not show which one is
// right: a host that was cut off may have written more than the host that took over. Therefore the archive counts
// generations. Each writer of a session begins a generation of its own, and nobody else writes to it:
//
//   - Restore compares the local file with the latest generation. It keeps the file if it continues that
//     generation, replaces it if it is older, and sets it aside (without deleting it) if the two diverge.
//   - Save, after Restore, begins the next generation. Without Restore it does so only if the local file
//     continues the latest generation. Later calls replace the writer's own generation.
//   - A writer whose generation is no longer the latest gets ErrSuperseded and saves nothing, unless its copy
//     continues the latest generation.
//
// Therefore two workers that save one session at the same time cannot destroy each other's copy, and the later
// generation is restored. The storage need not arbitrate, because each writer has its own keys. If two workers
// take over a session at the same moment, the copy with more lines counts, and the other worker's next Save
// returns ErrSuperseded.
//
// # What is in an object
//
// An object is a zstd stream that the zstd program can unpack. A frame that decoders skip precedes the compressed
// lines. It contains the session's ID, the number of lines and bytes, and their SHA-256. It is part of the object
// and not separate metadata, because not every storage changes metadata and content atomically. An object whose
// content does not match is never restored; the generation before it is used.
//
// # Retention
//
// Only Remove deletes something. When the CLI deletes its own files, which it does after 30 days, the archive keeps its
// copies. Use CLAUDEOPS_RETENTION, a life-cycle rule of the storage, or remove old directories, to limit how far back an archive
// reaches.
//
// Transcripts contain everything that an agent has read, including secrets. Local files and directories are
// accessible to their owner only. Configure the access to a bucket in the bucket.
package transcripts
