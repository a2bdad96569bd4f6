// Package transcripts keeps copies of the claude CLI's conversations in an archive, so that a
// conversation survives the host that wrote it and can go on at another.
//
//	             Restore: a missing or older local file is replaced, whole or not at all
//	           +---------------------------------------------------------------+
//	           v                                                               |
//	local transcript -- Save, Watch: what is new, compressed --> SESSION/00000001-WRITER.jsonl.zst
//	                                                             SESSION/00000002-WRITER.jsonl.zst
//
// # What is archived
//
// A transcript is a file of JSON lines that the CLI only appends to. The archive holds its
// complete lines: the end of a line that is being written waits for the next save. So a
// restored transcript always ends with a whole line, and the CLI, which would skip a line that
// was cut off, has nothing to skip.
//
// # What counts as newer
//
// A copy that goes on where another ends is newer than it. Which of two copies is right that
// went different ways after a common beginning cannot be told from their lengths: a host that
// was cut off may have written more than the one that took over. Therefore the archive counts
// generations. Whoever writes a session begins a generation of its own, beside the ones there
// are, and nobody else writes to it:
//
//   - Restore reconciles the local file with the latest generation: it stays if it goes on
//     where that ends, is replaced if it is older, and is set aside (not deleted) if the two
//     went different ways.
//   - Save, after Restore, begins the next generation. Without Restore it does so only if the
//     local file goes on where the latest generation ends. From then on it replaces its own.
//   - A writer whose generation is no longer the latest saves nothing and is told so by
//     ErrSuperseded, unless its copy goes on where the latest ends.
//
// Two workers that save one session at the same time can therefore not destroy each other's
// copy, and what the later one did is what is restored. No storage has to arbitrate: each writer
// has keys of its own. Should two take a session over at the very same moment, the one with more
// lines counts, and the other one's next Save says ErrSuperseded.
//
// # What is in an object
//
// A zstd stream that the zstd program unpacks as it is. In front of the compressed lines there
// is a frame which decoders skip; it says whose conversation this is, how many lines and bytes
// it has, and their SHA-256. It is part of the object and not metadata beside it, because the
// two must change together and not every kind of storage changes metadata and content at once.
// An object whose content does not agree is never restored; the generation before it is.
//
// # Retention
//
// Nothing is ever deleted here: not by this package, and not when the CLI deletes its own files,
// which it does after 30 days. How long an archive reaches back is for a life-cycle rule of the
// storage, or for whoever removes old directories.
//
// Transcripts hold whatever an agent has read, secrets among it. Local files and directories are
// for their owner only; who may read a bucket is the bucket's own matter.
package transcripts
