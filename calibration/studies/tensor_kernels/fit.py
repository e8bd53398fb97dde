import numpy as np
from cards import *
class Model:
    """specs: list of (name, init, lo, hi, prior_sd_shared(log), gen_sd(log) or 0)"""
    def __init__(s,specs): s.specs=specs; s.names=[x[0] for x in specs]; s.G=GENS
    def unpack(s,th):
        P=len(s.specs); sh=th[:P]; dev=th[P:].reshape(len(s.G),P)
        return {n:np.exp(sh[i]+dev[:,i]) for i,n in enumerate(s.names)}
def fit(model,pred,D,y,gidx,iters=14,fscale=.10,gen_scale=1.0,verbose=False,th0=None):
    """pred(D, prm) with prm[name] per-row arrays -> microseconds. Gauss-Newton (LM) on soft-L1 of log ratio with Gaussian priors on log params."""
    sp=model.specs; P=len(sp); G=len(model.G); N=len(y)
    mu=np.concatenate([np.log([x[1] for x in sp]),np.zeros(G*P)])
    sd=np.concatenate([[x[4] for x in sp],np.tile([x[5]*gen_scale for x in sp],G)])
    free=sd>0
    lo=np.log([x[2] for x in sp]); hi=np.log([x[3] for x in sp])
    th=mu.copy() if th0 is None else th0.copy()
    ly=np.log(y)
    def rowp(th,bump=None):
        sh=th[:P]; dv=th[P:].reshape(G,P); v=np.clip(sh+dv,lo,hi)
        return v[gidx]   # N x P
    def ev(V): return np.log(pred(D,{n:np.exp(V[:,i]) for i,n in enumerate(model.names)}))-ly
    def obj(r,th): 
        z=(r/fscale)**2
        return fscale**2*np.sum(2*(np.sqrt(1+z)-1)) + fscale**2*np.sum(((th-mu)[free]/sd[free])**2)*PRW
    PRW=1.0
    V=rowp(th); r=ev(V); f=obj(r,th); lam=1e-3
    for it in range(iters):
        Jrow=np.zeros((N,P))
        for i in range(P):
            if sd[i]<=0 and not np.any(sd[P+i::P]>0): continue
            h=.02; W=V.copy(); W[:,i]+=h; Jrow[:,i]=(ev(W)-r)/h
        J=np.zeros((N,P+G*P)); J[:,:P]=Jrow
        for g in range(G): m=gidx==g; J[m,P+g*P:P+(g+1)*P]=Jrow[m]
        w=1/np.sqrt(1+(r/fscale)**2)
        A=(J*w[:,None]).T@J; b=-(J*w[:,None]).T@r
        pr=np.where(free,PRW*fscale**2/np.where(free,sd,1)**2,0); A+=np.diag(pr); b-=pr*(th-mu)
        ok=False
        for _ in range(6):
            M=A+lam*np.diag(np.diag(A)+1e-9)
            idx=np.where(free)[0]; step=np.zeros(len(th)); step[idx]=np.linalg.solve(M[np.ix_(idx,idx)],b[idx])
            step=np.clip(step,-.5,.5)
            t2=th+step; V2=rowp(t2); r2=ev(V2); f2=obj(r2,t2)
            if f2<f: ok=True; break
            lam*=5
        if not ok: break
        d=f-f2; th,V,r,f=t2,V2,r2,f2; lam=max(lam/4,1e-5)
        if verbose: print(it,f)
        if d<1e-4*f: break
    return th
def rowparams(model,th,gidx):
    sp=model.specs; P=len(sp); lo=np.log([x[2] for x in sp]); hi=np.log([x[3] for x in sp])
    v=np.exp(np.clip(th[:P]+th[P:].reshape(len(model.G),P),lo,hi))[gidx]
    return {n:v[:,i] for i,n in enumerate(model.names)}
def sub(D,m):
    return {k:(v[m] if isinstance(v,np.ndarray) else v) for k,v in D.items()}
def stats(p,y):
    e=p/y-1; return np.mean(abs(e))*100,np.median(abs(e))*100,np.mean(e)*100
def evaluate(model,pred,D,y,gidx,card,hold,nfit=400,seed=0,cards=None,gens=None,modes='abc',gen_scale=1.0,iters=14,show=True,fscale=.1,test=None):
    """a: fifth of shapes held out; b: card left out; c: generation left out. returns dict"""
    rng=np.random.default_rng(seed); cards=cards or list(dict.fromkeys(card)); res={}
    def sample(mask):
        idx=[]
        for c in cards:
            i=np.where(mask&(card==c))[0]
            if len(i)>nfit: i=rng.choice(i,nfit,replace=False)
            idx.append(i)
        return np.concatenate(idx) if idx else np.array([],int)
    def run(train,th0=None,it=iters):
        i=sample(train); return fit(model,pred,sub(D,i),y[i],gidx[i],it,fscale,gen_scale,th0=th0)
    tha=run(~hold); out={}
    def score(th,mask):
        i=np.where(mask)[0]; return stats(pred(sub(D,i),rowparams(model,th,gidx[i])),y[i])
    res['a']={c:score(tha,hold&(card==c)) for c in cards}
    if 'b' in modes: res['b']={c:score(run(card!=c,tha,8),card==c) for c in cards}
    if 'c' in modes:
        res['c']={}
        for g in dict.fromkeys(CARDS[c]['gen'] for c in cards):
            cs=[c for c in cards if CARDS[c]['gen']==g]
            if len(cs)>1:
                th=run(~np.isin(card,cs),tha,8)
                for c in cs: res['c'][c]=score(th,card==c)
    if show:
        for k,v in res.items():
            print(k,'mean %.2f |'%np.mean([x[0] for x in v.values()]),'  '.join('%s %.1f/%.1f/%+.1f'%(c,*x) for c,x in v.items()),flush=True)
    return res,tha
