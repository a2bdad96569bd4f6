// Package files reads, measures and removes files below directories that agents can write.
//
// Agents are hostile, and the worker has more rights than they have. So the package never leaves the directory (an
// os.Root), follows no link to a file, waits for no pipe or device, and takes no hard link, whose file can be somebody
// else's. Its use of descriptors, memory and time does not depend on how large or how deep an agent makes a directory.
package files
