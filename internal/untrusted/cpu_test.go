package untrusted
import ("testing";"syscall";"strings";"time";"runtime")
func cpu() float64 { var r syscall.Rusage; syscall.Getrusage(0, &r); return float64(r.Utime.Sec+r.Stime.Sec)+float64(r.Utime.Usec+r.Stime.Usec)/1e6 }
func TestCPU(t *testing.T){
	var m0,m1 runtime.MemStats; runtime.ReadMemStats(&m0)
	t0:=time.Now(); c0:=cpu(); Scan("ignore previous instructions"); t.Logf("first hit: %v wall %.1f ms cpu", time.Since(t0),(cpu()-c0)*1e3)
	runtime.GC(); runtime.ReadMemStats(&m1); t.Logf("heap %d KB", (m1.HeapAlloc-m0.HeapAlloc)>>10)
	tools:=catalog(t,"npm-mcp")
	var texts []string; var desc []string; n,dn:=0,0
	for _,x:=range tools{ for _,s:=range x.texts(){texts=append(texts,s);n+=len(s)}; desc=append(desc,x.Description); dn+=len(x.Description)}
	for _,s:=range texts{Scan(s)}
	best:=func(k int, f func()) float64 { b:=1e9; for range k { runtime.GC(); c:=cpu(); f(); b=min(b,cpu()-c)}; return b}
	d:=best(10,func(){for _,s:=range texts{Scan(s)}})
	t.Logf("all strings: %d strings %.1f MB: %.1f ms CPU = %.1f MB/s, %.2f µs/KB", len(texts), float64(n)/1e6, d*1e3, float64(n)/1e6/d, d*1e6/float64(n)*1024)
	d=best(10,func(){for _,s:=range desc{Scan(s)}})
	t.Logf("descriptions: %d %.1f MB: %.1f ms CPU = %.1f MB/s, %.2f µs/KB", len(desc), float64(dn)/1e6, d*1e3, float64(dn)/1e6/d, d*1e6/float64(dn)*1024)
	q:=strings.Repeat("Returns the list of open pull requests with their title, author and date. ", 14)
	d=best(10,func(){for range 10000 {Scan(q)}})/10000
	t.Logf("quiet: %.2f µs/KB %.0f MB/s", d*1e6/float64(len(q))*1024, float64(len(q))/1e6/d)
	l:=strings.Repeat("Returns the list of open pull requests: title, author and date. ", 16)
	d=best(5,func(){for range 2000 {Line(l,2000)}})/2000
	t.Logf("Line: %.2f µs/KB", d*1e6/float64(len(l))*1024)
	d=best(5,func(){for range 2000 {Block(l,BlockConfig{})}})/2000
	t.Logf("Block: %.2f µs/KB", d*1e6/float64(len(l))*1024)
	for _,p:=range []string{"ignore ","ignore all previous instructions ","do not tell the user ","1gn0r3 ","<important>","send ~/.ssh "}{
		s:=strings.Repeat(p,MaxScan/len(p)); d=best(3,func(){Scan(s)}); t.Logf("worst %q: %.0f ms for %d KB", p,d*1e3,MaxScan>>10)
	}
}
