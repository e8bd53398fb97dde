"""Tensor-core GEMM. predict(D,p): vectorised over rows; predict_row(row,card,params): plain Python, the reference for a C++ port. Times in us."""
import numpy as np, pandas as pd, zlib, math
from cards import *
TILES=[(16,64),(16,128),(64,64),(64,128),(128,64),(128,128),(128,256),(256,128)]   # (rows of m, columns of n)
SPLITS=[1,2,4,8,16,32,64]
KL=.5; P=3; ECC=1/16
# name, initial, lower, upper, prior sd of log (shared value), prior sd of log (deviation of a generation)
SPECS=[('t0',2.2,1,5,.3,.1),('lam',.25,.01,2,1,.2),('eps',2.4,.2,10,.7,.2),('sig',2.4,.3,10,.7,.25),('mu',1.5,.2,10,.7,.2),('kappa',.8,.3,1.5,.3,.1),
('e',.87,.6,1,.15,.05),('cap',.85,.3,1.2,.3,.12),('eta',.89,.5,1.1,.15,.05),('E',1.45,.5,4,.3,.15),('q',.2,.01,1,1,.5),('old',.88,.6,1.2,.1,0)]
def facts(cards,dt='bf16'):
    C=[CARDS[c] for c in cards]; a=lambda k: np.array([c[k] for c in C],float)
    fs=np.array([c.get('fs',1.) for c in C])
    D=dict(sms=a('sms'),f=a('f')*fs*1e3,bw=a('bw')*1e3*np.array([1-ECC*c.get('ecc',0) for c in C]),l2=a('l2')*2**20,l2b=a('l2b'),peak=a(dt)*fs*1e6,tdp=a('tdp'),cc=a('cc'))
    D['mma']=~np.isin(D['cc'],(90,100,103)); D['c']=np.where(D['mma'],1.,2.); D['umma']=np.isin(D['cc'],(100,103))
    return D   # cycles/us, bytes/us, bytes, bytes/clk, flop/us, W
def rows():
    d=pd.read_pickle('d.pkl'); g=d[(d.op=='gemm')&d.precision.isin(['bf16','fp16'])].copy().reset_index(drop=True)
    g['copies']=np.where(g.file=='tensor',6.,1e3)   # layer_ops: weights not in the L2
    return g
def prep(g,dt='bf16',bx=2.,bw=2.,by=2.,epj=1.,tmin=0,split=True):
    D=facts(g.card,dt); D.update(m=g.m.values,n=g.n.values,k=g.k.values,copies=g.copies.values,old=(g.library=='sarathi').values)
    N=len(g); D.update(bx=np.full(N,bx),bwt=np.full(N,bw),by=np.full(N,by),epj=np.full(N,epj),tmin=np.full(N,tmin),split=np.full(N,split)); return D
def tcompute(D,p):
    m,n,k,S,f=D['m'],D['n'],D['k'],D['sms'],D['f']
    us=2e3/f                                             # params in cycles are stored as us at 2 GHz
    beta=p['kappa']*D['l2b']*D['c']/S*f                  # bytes/us/SM
    eta=np.minimum(p['eta']*np.where(D['old'],p['old'],1.),D['tdp']*1e6/(p['E']*np.where(D['mma'],1.,.43)*D['epj']*D['peak']))
    rate=eta*D['peak']/S; bl2=KL*D['l2b']*f; best=np.full(len(m),np.inf)
    for bm,bn in TILES:
        rows_=np.minimum(bm,m); t=np.ceil(m/bm)*np.ceil(n/bn)
        tk=64*np.maximum(2*bm*bn/rate,(rows_*D['bx']+bn*D['bwt'])/beta)
        fix=p['lam']*us+2*p['eps']*rows_*bn/beta*D['by']/2
        ban=(D['umma']&(bm<64)&(bn<128))|(bm<D['tmin'])|(bn<D.get('tminn',D['tmin']))
        for s in SPLITS:
            x=t*s/S; w=np.where(x<=1,1,(1-p['q'])*x+p['q']*np.ceil(x))
            T=w*(fix+np.ceil(k/(64*s))*tk)
            if s>1: T=np.where((128*s<=k)&(t*s<=2*S)&D['split'],T+p['sig']*us+8*s*m*n/bl2,np.inf)
            best=np.where(ban,best,np.minimum(best,T))
    return best
def miss(F,cap): z=F/cap; z=z*z; z=z*z; z=z*z; return z/(1+z)
def tmemory(D,p,A,W,C,copies):
    cap=p['cap']*D['l2']; bl2=KL*D['l2b']*D['f']; bd=p['e']*D['bw']
    m1=miss(copies*W+A+C,cap); m2=miss(A+C+np.minimum(W,cap),cap)
    t=W*(m1/bd+(1-m1)/bl2)+(A+C)*(m2/bd+(1-m2)/bl2)
    return t+p['mu']*t/(t+p['mu'])
def body(D,p):
    tc=tcompute(D,p); tm=tmemory(D,p,D['m']*D['k']*D['bx'],D['n']*D['k']*D['bwt'],D['m']*D['n']*D['by'],D['copies'])
    return np.cbrt(tc**3+tm**3)
def predict(D,p): return p['t0']*2e3/D['f']+body(D,p)
def predict_row(row,card,p,dt='bf16',bx=2,bw=2,by=2,epj=1,tmin=0,split=True):
    """row: m,n,k,copies,old; card: name in CARDS; p: dict of one generation's values."""
    c=CARDS[card]; m,n,k=row['m'],row['n'],row['k']; S=c['sms']; f=c['f']*c.get('fs',1)*1e3; us=2e3/f
    mma=c['cc'] not in (90,100,103); mult=1 if mma else 2; peak=c[dt]*c.get('fs',1)*1e6
    beta=p['kappa']*c['l2b']*mult/S*f; bl2=KL*c['l2b']*f; bd=p['e']*c['bw']*1e3*(1-ECC*c.get('ecc',0))
    eta=min(p['eta']*(p['old'] if row.get('old') else 1),c['tdp']*1e6/(p['E']*(1 if mma else .43)*epj*peak)); rate=eta*peak/S
    best=math.inf
    for bm,bn in TILES:
        if (not mma and c['cc']>=100 and bm<64 and bn<128) or bm<tmin or bn<tmin: continue
        t=-(-m//bm)*-(-n//bn); r=min(bm,m)
        tk=64*max(2*bm*bn/rate,(r*bx+bn*bw)/beta); fix=p['lam']*us+p['eps']*by*r*bn/beta
        for s in SPLITS:
            if s>1 and (128*s>k or t*s>2*S or not split): break
            x=t*s/S; w=1 if x<=1 else (1-p['q'])*x+p['q']*math.ceil(x)
            T=w*(fix+-(-k//(64*s))*tk)
            if s>1: T+=p['sig']*us+8*s*m*n/bl2
            best=min(best,T)
    A,W,C=m*k*bx,n*k*bw,m*n*by; cap=p['cap']*c['l2']*2**20
    def ms(F): z=(F/cap)**8; return z/(1+z)
    m1=ms(row['copies']*W+A+C); m2=ms(A+C+min(W,cap)); tm=W*(m1/bd+(1-m1)/bl2)+(A+C)*(m2/bd+(1-m2)/bl2); tm+=p['mu']*tm/(tm+p['mu'])
    return p['t0']*us+(best**3+tm**3)**(1/3)
def hold_of(g): return np.array([zlib.crc32(str(s).encode())%5==0 for s in g['shape']])
def gens_of(card): return np.array([GENS.index(CARDS[c]['gen']) for c in card])
if __name__=='__main__':
    import fit,json
    g=rows(); D=prep(g); y=g.us.values; card=g.card.values; gi=gens_of(card); h=hold_of(g); M=fit.Model(SPECS)
    r,_=fit.evaluate(M,predict,D,y,gi,card,h,nfit=450)
    rng=np.random.default_rng(1); i=np.concatenate([rng.permutation(np.where(card==c)[0])[:700] for c in dict.fromkeys(card)])
    th=fit.fit(M,predict,fit.sub(D,i),y[i],gi[i],20); up=M.unpack(th)
    pars={gn:{n:float(up[n][j]) for n in M.names} for j,gn in enumerate(GENS)}; pars['shared']={n:float(np.exp(th[a])) for a,n in enumerate(M.names)}
    lo_hi={x[0]:(x[2],x[3]) for x in SPECS}
    for q in pars.values():
        for n in q: q[n]=min(max(q[n],lo_hi[n][0]),lo_hi[n][1])
    json.dump(dict(params=pars,errors={k:{c:list(map(float,x)) for c,x in v.items()} for k,v in r.items()}),open('gemm.json','w'),indent=1)
    print(pd.DataFrame(pars).round(3).to_string())
    p=predict(D,fit.rowparams(M,th,gi)); print('in fit',{c:round(fit.stats(p[card==c],y[card==c])[0],1) for c in dict.fromkeys(card)})
    j=rng.permutation(len(g))[:300]; ref=g.iloc[j][['gpu','card','m','n','k','copies','library','us']].copy(); ref['predicted_us']=p[j]
    q=[predict_row(dict(m=int(a.m),n=int(a.n),k=int(a.k),copies=a.copies,old=a.library=='sarathi'),a.card,pars[CARDS[a.card]['gen']]) for a in ref.itertuples()]
    print('row vs vector',np.max(np.abs(np.array(q)/p[j]-1))); ref['predicted_us']=q; ref.to_csv('gemm_reference.csv',index=False)
    np.save('gemm_th.npy',th)
