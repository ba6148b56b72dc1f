import os,socket,ctypes,errno
def t(n,f):
    try: print("ESC?",n,repr(f())[:80])
    except Exception as e: print("ok  ",n,type(e).__name__,str(e)[:60])
rd=lambda p:(lambda:open(p,'rb').read(40))
KH=os.environ.get('KH','/tmp/brkN/kh')
for p in ('/tmp/brkN/home/.ssh/id_rsa','/etc/shadow',KH+'/state/audit.key',KH+'/state/ken.db',KH+'/context/tool-access.json','/proc/1/environ','/proc/self/root/etc/hostname','/etc/hostname','/dev/vda','/dev/tty','/dev/kmsg','/proc/kcore','/sys/kernel/uevent_seqnum'): t('read '+p,rd(p))
t('ls /',lambda:os.listdir('/')); t('ls /tmp',lambda:os.listdir('/tmp')); t('ls KH',lambda:os.listdir(KH)); t('fd',lambda:[os.readlink('/proc/self/fd/'+x) for x in os.listdir('/proc/self/fd')])
t('write /tmp/brkN/x',lambda:open('/tmp/brkN/xx','w')); t('write /usr/x',lambda:open('/usr/x','w'))
t('inet',lambda:socket.socket()); t('inet6',lambda:socket.socket(socket.AF_INET6)); t('udp',lambda:socket.socket(socket.AF_INET,socket.SOCK_DGRAM)); t('unix',lambda:socket.socket(socket.AF_UNIX)); t('netlink',lambda:socket.socket(16,3)); t('vsock',lambda:socket.socket(40,1)); t('packet',lambda:socket.socket(17,3))
def pair():
    a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM); a.connect('\0brk-abstract'); a.send(b'abstract hit'); return 'sent'
t('dgram pair->abstract',pair)
def pair2():
    a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM); a.connect('/tmp/brkN/sock'); a.send(b'path hit'); return 'sent'
t('dgram pair->path',pair2)
def pair3():
    a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM); a.connect('/tmp/brkN/ws/sock'); a.send(b'ws path hit'); return 'sent'
t('dgram pair->workspace path',pair3)
L=ctypes.CDLL(None,use_errno=True)
def sysc(n,*a):
    r=L.syscall(n,*a)
    if r<0: raise OSError(ctypes.get_errno(),errno.errorcode[ctypes.get_errno()])
    return r
for n,nr,a in (('unshare',272,(0x10000000,)),('clone3',435,(0,0)),('io_uring',425,(1,0)),('keyctl',250,(0,0)),('ptrace',101,(16,1,0,0)),('mount',165,(0,b"/tmp",b"tmpfs",0,0)),('bpf',321,(0,0,0)),('memfd',319,(b"x",0)),('name_to_handle',303,(0,)),('mq_open',240,(b"x",0o102,0o600,0)),('shmget',29,(1,4096,0o1600)),('pidfd_open',434,(1,0)),('personality',135,(0x40000,)),('syslog',103,(3,0,0)),('fsopen',430,(b"tmpfs",0)),('setuid0',105,(0,)),('landlock',444,(0,0,1)),('fanotify',300,(0,0)),('inotify',253,()),('process_mrelease',448,(3,0)),('kill1',62,(1,9)),('kill-1 sig0',62,(-1,0)),('mknod chr',133,(b"nod",0o20666,0x103)),('mknod fifo',133,(b"fif",0o10666,0)),('cachestat',451,(0,)),('quotactl',179,(0,0,0,0)),('statmount',457,(0,0,0,0)),('listns',470,(0,0,0,0))): t(n,lambda nr=nr,a=a:sysc(nr,*a))
t('chmod /usr/bin',lambda:os.chmod('/usr/bin',0o777)); t('suid',lambda:(open('su','w'),os.chmod('su',0o6755),oct(os.stat('su').st_mode)))
t('hardlink shadow',lambda:os.link('/etc/shadow','hl')); t('hardlink passwd',lambda:os.link('/etc/passwd','hl2')); t('symlink+read',lambda:(os.path.lexists('sl') or os.symlink('/tmp/brkN/home/.ssh/id_rsa','sl'),open('sl').read()))
t('rlimit raise',lambda:__import__('resource').setrlimit(7,(1<<20,1<<20)))
t('proc others',lambda:[p for p in os.listdir('/proc') if p.isdigit()])
t('oom_adj',lambda:open('/proc/self/oom_score_adj','w').write('-500'))
t('write proc sys',lambda:open('/proc/sys/kernel/hostname','w').write('x')); t('core_pattern',lambda:open('/proc/sys/kernel/core_pattern','w').write('|/tmp/x'))
