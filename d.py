import os,sys,time
for i in range(3):
    if os.fork()==0:
        os.setsid()
        if os.fork()==0:
            os.setsid()
            for fd in (0,1,2):
                try: os.close(fd)
                except: pass
            import signal
            for s in range(1,65):
                try: signal.signal(s,signal.SIG_IGN)
                except: pass
            open("alive%d"%i,"w").write(str(os.getpid()))
            while True:
                time.sleep(0.2); open("tick%d"%i,"w").write(str(time.time()))
        os._exit(0)
time.sleep(float(sys.argv[1]))
