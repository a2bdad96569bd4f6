// Package transcripts keeps copies of the claude CLI's conversations in an archive, so that a conversation survives its
// host and can be continued on another host.
//
//	             Restore: replaces a missing or older local file, completely or not at all
//	           +---------------------------------------------------------------+
//	           v                                                               |
//	local transcript -- Save: new lines, compressed ----> SESSION/00000001-WRITER.jsonl.zst
//	                                                             SESSION/00000002-WRITER.jsonl.zst
//
// # What is archived
//
// A transcript is a file of JSON lines. The CLI only appends to it. The archive contains complete lines. A line that is
// being written follows with the next save. A restored transcript therefore always ends with a complete line. The CLI
// would skip an incomplete line.
//
// # What counts as newer
//
// A copy that continues another copy is newer. If two copies diverge, their lengths do not show which one is right: a
// host that was cut off may have written more than the host that took over. Therefore the archive counts generations.
// Each writer of a session begins a generation of its own, and nobody else writes to this generation:
//
//   - Restore compares the local file with the latest generation. Restore keeps a file that
//     continues this generation, replaces an older file, and renames a file that diverges from the generation.
//   - Save, after Restore, begins the next generation. Without Restore, Save does so only if the local
//     file continues the latest generation. Later calls replace the writer's own generation.
//   - A writer whose generation is no longer the latest gets ErrSuperseded and saves nothing, unless the
//     writer's copy continues the latest generation.
//
// Therefore two workers that save one session at the same time cannot destroy each other's copy, and the later
// generation is restored. The storage need not arbitrate, because each writer has its own keys. If two workers
// take over a session at the same moment, the copy with more lines counts, and the other worker's next Save
// returns ErrSuperseded.
//
// # What is in an object
//
// An object is a zstd stream that the zstd program can unpack. The compressed lines follow a frame that decoders skip.
// This frame contains the session's ID, the number of lines and bytes, and the SHA-256 of the lines. The frame is part
// of the object and not separate metadata, because not every storage changes metadata and content atomically. An object
// whose content does not match is never restored; the generation before it is used.
//
// # Retention
//
// Only Remove deletes copies from the archive. When the CLI deletes its own files after 30 days, the archive keeps its
// copies. To limit the age of archived copies, use CLAUDEOPS_RETENTION, a life-cycle rule of the storage, or remove
// old directories.
//
// Transcripts contain everything that an agent has read, including secrets. Local files and directories are
// accessible to their owner only. Configure the access to a bucket in the bucket.
package transcripts
