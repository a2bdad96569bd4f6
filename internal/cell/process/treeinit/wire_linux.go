package treeinit

import (
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
)

// Job describes the program that an init runs. The init does not get the job through its arguments or environment,
// because other processes could read these while the init lives. If Job.Path is empty, the init prepares everything,
// runs no program, and ends.
type Job struct {
	Path string
	Args []string // with the program's name
	Env  []string
	Dir  string
	// Sandbox is the sandbox of the program; nil means none.
	Sandbox *Sandbox
	// User is the user of the program; nil means the user of this process.
	User *User
}

// User is the user of a program.
type User struct {
	UID, GID int
	// Groups are the supplementary groups.
	Groups []int
}

// givesUpRights reports whether a launcher has to start the program.
func (j *Job) givesUpRights() bool { return j.Sandbox != nil || j.User != nil }

// Encode returns j in the form that an init reads.
func (j *Job) Encode() []byte {
	var e encoder
	e.text(j.Path)
	e.texts(j.Args)
	e.texts(j.Env)
	e.text(j.Dir)
	e.flag(j.Sandbox != nil)
	if j.Sandbox != nil {
		j.Sandbox.encode(&e)
	}
	e.flag(j.User != nil)
	if j.User != nil {
		e.number(j.User.UID)
		e.number(j.User.GID)
		e.number(len(j.User.Groups))
		for _, group := range j.User.Groups {
			e.number(group)
		}
	}
	return e.written
}

// decodeJob is the reverse of Encode.
func decodeJob(content string) (Job, error) {
	d := decoder{rest: content}
	j := Job{Path: d.text(), Args: d.texts(), Env: d.texts(), Dir: d.text()}
	if d.flag() {
		j.Sandbox = decodeSandbox(&d)
	}
	if d.flag() {
		j.User = &User{UID: d.number(), GID: d.number()}
		for range d.length() {
			j.User.Groups = append(j.User.Groups, d.number())
		}
	}
	return j, d.err
}

// readJob reads the job of this init or launcher. It leaves the file open.
func readJob() (Job, error) {
	var info syscall.Stat_t
	if err := syscall.Fstat(jobDescriptor, &info); err != nil {
		return Job{}, err
	}
	content := make([]byte, info.Size)
	for read := 0; read < len(content); {
		n, err := syscall.Pread(jobDescriptor, content[read:], int64(read))
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return Job{}, err
		case n == 0:
			return Job{}, io.ErrUnexpectedEOF
		default:
			read += n
		}
	}
	return decodeJob(string(content))
}

// Command is one byte with a command to an init.
type Command byte

// The commands.
const (
	CommandInterrupt Command = 'i' // SIGINT to the program and its group
	CommandKill      Command = 'k' // SIGKILL to the whole tree
)

// Answer is a report of an init, or of a launcher to its init.
type Answer struct {
	Kind AnswerKind
	// Sandbox is the sandbox of the program.
	Sandbox Sandboxed
	// Reason or Errno says why the program was not started.
	Errno  syscall.Errno
	Reason string
	// Status is the wait status of the program.
	Status syscall.WaitStatus
	// Survivors counts the processes that the init may not kill, and the processes that are still alive after SIGKILL.
	Survivors int
	// File is what a program of the tree may not do with a file.
	File Refused
}

// AnswerKind is the kind of an answer.
type AnswerKind int

// The kinds of answers.
const (
	AnswerNone     AnswerKind = iota
	AnswerLaunched            // the program is about to run; another answer follows
	// AnswerUnconfined: the program was not started: its required sandbox is not available; Sandbox.Remark says why
	AnswerUnconfined
	// AnswerUnjudged: the program was not started, because its files or connections are not judged; Sandbox.Remark says
	// why
	AnswerUnjudged
	AnswerRefused     // the program could not be started
	AnswerEnded       // the program has ended, and so has its tree, except for the survivors
	AnswerGivenUp     // the program is one of the survivors
	AnswerFileRefused // a program of the tree may not use a file; other answers follow
)

// send writes the answer a to file with one call of Write. Several goroutines can send at once.
func (a Answer) send(file *os.File) error {
	_, err := file.Write(a.encode())
	return err
}

// sendWith is send for a socket. It also sends a descriptor, unless it is -1.
func (a Answer) sendWith(socket *os.File, descriptor int) error {
	if descriptor < 0 {
		return a.send(socket)
	}
	return syscall.Sendmsg(controlDescriptor, a.encode(), syscall.UnixRights(descriptor), nil, 0)
}

// encode returns the message with the answer.
func (a Answer) encode() []byte {
	var body encoder
	body.number(int(a.Kind))
	body.number(a.Sandbox.ABI)
	body.text(a.Sandbox.Remark)
	body.flag(a.Sandbox.Opens)
	body.flag(a.Sandbox.Connects)
	body.number(int(a.Errno))
	body.text(a.Reason)
	body.number(int(a.Status))
	body.number(a.Survivors)
	body.text(a.File.Path)
	body.text(a.File.Program)
	body.flag(a.File.Write)
	body.flag(a.File.Connect)
	body.text(a.File.Reason)
	var message encoder
	message.text(string(body.written))
	return message.written
}

// Answers reads the answers of an init.
type Answers struct {
	from     io.Reader
	received []byte
}

// NewAnswers returns a reader that decodes the answers from the given source.
func NewAnswers(from io.Reader) *Answers { return &Answers{from: from} }

// Next returns the next answer. It fails with io.EOF when there are no more.
func (a *Answers) Next() (Answer, error) {
	for buffer := make([]byte, 512); ; {
		message := decoder{rest: string(a.received)}
		body := message.text()
		if message.err == nil {
			a.received = []byte(message.rest)
			return decodeAnswer(body)
		}
		if !errors.Is(message.err, io.ErrUnexpectedEOF) {
			return Answer{}, message.err
		}
		n, err := a.from.Read(buffer)
		a.received = append(a.received, buffer[:n]...)
		if n == 0 && err != nil {
			return Answer{}, err
		}
	}
}

// decodeAnswer is the reverse of send, for the body of one message.
func decodeAnswer(body string) (Answer, error) {
	d := decoder{rest: body}
	answer := Answer{
		Kind:      AnswerKind(d.number()),
		Sandbox:   Sandboxed{ABI: d.number(), Remark: d.text(), Opens: d.flag(), Connects: d.flag()},
		Errno:     syscall.Errno(d.number()),
		Reason:    d.text(),
		Status:    syscall.WaitStatus(d.number()), //nolint:gosec // it was one
		Survivors: d.number(),
		File:      Refused{Path: d.text(), Program: d.text(), Write: d.flag(), Connect: d.flag(), Reason: d.text()},
	}
	return answer, d.err
}

// encoder writes values. Each value becomes a text: the content's length in decimal, a colon, and the content. Packages
// such as encoding/gob are initialized too late.
type encoder struct{ written []byte }

func (e *encoder) text(text string) {
	e.written = append(strconv.AppendInt(e.written, int64(len(text)), 10), ':')
	e.written = append(e.written, text...)
}

func (e *encoder) texts(list []string) {
	e.number(len(list))
	for _, text := range list {
		e.text(text)
	}
}

func (e *encoder) number(number int) { e.text(strconv.Itoa(number)) }

func (e *encoder) flag(flag bool) { e.text(strconv.FormatBool(flag)) }

// decoder reads the output of an encoder. After an error it returns zero values.
type decoder struct {
	rest string
	// err is the first error: io.ErrUnexpectedEOF if the input ends too early.
	err error
}

var errMalformed = errors.New("malformed message between a process and its init")

func (d *decoder) text() string {
	length := 0
	for at := range len(d.rest) {
		digit := d.rest[at]
		if digit == ':' && at > 0 {
			return d.take(at+1, length)
		}
		if digit < '0' || digit > '9' || length > 1<<30 {
			d.fail(errMalformed)
			return ""
		}
		length = 10*length + int(digit-'0')
	}
	d.fail(io.ErrUnexpectedEOF)
	return ""
}

// take returns a part of the remaining input, and skips the input up to the end of that part. from is the offset of the
// part, and length is its number of bytes.
func (d *decoder) take(from, length int) string {
	if len(d.rest)-from < length {
		d.fail(io.ErrUnexpectedEOF)
		return ""
	}
	text := d.rest[from : from+length]
	d.rest = d.rest[from+length:]
	return text
}

func (d *decoder) texts() (list []string) {
	for range d.length() {
		list = append(list, d.text())
	}
	return list
}

// length returns the number of the values that follow.
func (d *decoder) length() int {
	length := d.number()
	if length < 0 || length > len(d.rest) { // each takes more than a byte
		d.fail(errMalformed)
		return 0
	}
	return length
}

func (d *decoder) number() int {
	number, err := strconv.Atoi(d.text())
	if err != nil {
		d.fail(errMalformed)
	}
	return number
}

func (d *decoder) bits() uint64 {
	bits, err := strconv.ParseUint(d.text(), 10, 64)
	if err != nil {
		d.fail(errMalformed)
	}
	return bits
}

func (d *decoder) flag() bool {
	flag, err := strconv.ParseBool(d.text())
	if err != nil {
		d.fail(errMalformed)
	}
	return flag
}

// fail keeps the first error, and drops the rest of the input.
func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.rest = err, ""
	}
}
