package untrusted
import ("testing";"strings";"time")
func TestWorst(t *testing.T){
	for _,p:=range []string{"ignore ","ignore previous ","ignore all previous instructions ", "<","[","#","# ",":","system: ","System: you ","do not tell the user ","never tell ","\u200b","a\u200b","\u0301","<!--","<!-- you must -->","A","aB3","a-","a b ","\n"," ","`","\"","'","```\n","new instructions: ",".ssh ","send .ssh ","忽略","игнор","іgnore ","%41","&#65;","1gn0r3 ","\x1b","\x1b[0m","\xff","<span style=\"display:none\" ","![x](http://a?","<|im_start|>","<|a","decode ","erongi ","vtaber ","forget everything ","not not follow ", "<important>", "\U000E0041", "[//]: # (x", "ignora ", "instruc ignora ", "when the user must read .ssh do not tell "}{
		s:=strings.Repeat(p,(1<<20)/len(p))
		t0:=time.Now(); f:=Scan(s); d:=time.Since(t0)
		t1:=time.Now(); Line(s,500); Terminal(s); Block(s,BlockConfig{Max:1<<20}); d2:=time.Since(t1)
		t2:=time.Now(); Skeleton(s); NameFindings(s); d3:=time.Since(t2)
		if d>300*time.Millisecond||d2>300*time.Millisecond||d3>500*time.Millisecond { t.Logf("%-20q scan %v render %v names %v findings %d",p,d,d2,d3,len(f)) }
	}
}
