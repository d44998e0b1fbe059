// The programs of the part `calls`. The programs are static, so that no preloaded library can intercept their calls.
// Each program prints its own figures, as JSON.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func main() {
	file, count := os.Args[2], number(os.Args[3])
	switch os.Args[1] {
	case "wal":
		show(logs(file, count, number(os.Args[4])))
	case "compute":
		show(compute(file, count))
	case "bare":
		show(bare(count))
	}
}

// Writes logs as etcd does: each goroutine appends to a file of its own, and syncs it.
func logs(file string, count int, goroutines int) map[string]int64 {
	var group sync.WaitGroup
	lasted := make([][]int64, goroutines)
	for number := range goroutines {
		group.Add(1)
		go func() {
			defer group.Done()
			lasted[number] = write(fmt.Sprintf("%s%d", file, number), count)
		}()
	}
	group.Wait()
	all := slices.Concat(lasted...)
	slices.Sort(all)
	return map[string]int64{"p50_ns": all[len(all)/2], "min_ns": all[0], "calls": int64(len(all))}
}

func write(file string, count int) []int64 {
	log, err := os.Create(file)
	check(err)
	defer log.Close()
	record, lasted := make([]byte, 512), make([]int64, count)
	for at := range lasted {
		_, err := log.WriteAt(record, int64(at%64)*512)
		check(err)
		begin := time.Now()
		check(syscall.Fdatasync(int(log.Fd())))
		lasted[at] = int64(time.Since(begin))
	}
	return lasted
}

// Reads a file and hashes its bytes: the kernel notifies dashpot of none of these calls. The result is the CPU time.
func compute(file string, count int) map[string]int64 {
	data, err := os.Open(file)
	check(err)
	block, before := make([]byte, 64<<10), cpu()
	var sum [32]byte
	for range count {
		_, err := data.ReadAt(block, 0)
		check(err)
		copy(block, sum[:])
		sum = sha256.Sum256(block)
	}
	return map[string]int64{"cpu_ns": cpu() - before}
}

// Makes the cheapest call, of which the kernel does not notify dashpot either.
func bare(count int) map[string]int64 {
	runtime.LockOSThread()
	before := cpu()
	for range count {
		syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	return map[string]int64{"call_ns": (cpu() - before) / int64(count)}
}

func cpu() int64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

func number(word string) int {
	number, err := strconv.Atoi(word)
	check(err)
	return number
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func show(figures map[string]int64) {
	check(json.NewEncoder(os.Stdout).Encode(figures))
}
