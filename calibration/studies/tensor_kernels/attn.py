"""Attention: prefill (causal, with past), decode, encoder, mixed. GEMM's values frozen (kappa.. not used; e, cap, mu, eta, E, t0 are)."""
import numpy as np,pandas as pd,json,sys,gemm,fit; from cards import *
NAMES=['t0','mu','e','cap','eta','E']
BF=json.load(open('gemm.json'))['params']
PADS=np.array([64,96,128,192,256,512])
def pad(d): return PADS[np.searchsorted(PADS,d)].astype(float)
def rows(kind):
    d=pd.read_pickle('d.pkl')
    if kind=='mixed': g=d[(d.op=='attention')].copy()
    else: g=d[d.op==dict(prefill='context_attention',decode='generation_attention',encoder='encoder_attention')[kind]].copy()
    if kind=='prefill': g=g[(g.s>1)]
    if kind!='mixed': g=g[~((g.card=='H100')&(g.d>256))]   # FA4 on Hopper
    g=g.reset_index(drop=True); z=pd.Series(0.,index=g.index)
    if kind in('prefill','encoder'): g['nb'],g['q'],g['pst'],g['dec'],g['len']=g.b,g.s,z,z,z
    if kind=='decode': g['nb'],g['q'],g['pst'],g['dec'],g['len']=z,z,z,g.b,g.past+1
    if kind=='mixed': g['nb'],g['q'],g['pst'],g['dec'],g['len']=1.*(g.chunk>0),g.chunk,g.past,g.decodes.fillna(0),g.ctx.fillna(0)+1
    return g
def prep(g,kind):
    D=gemm.facts(g.card); D['kind']=kind
    for c in ('nb','q','pst','dec','len','heads','kv_heads','d'): D[c]=g[c].values.astype(float)
    for n in NAMES: D['_'+n]=np.array([BF[CARDS[c]['gen']][n] for c in g.card])
    D['fa2']=D['mma']; return D
SPLITS=[1,2,4,8,16,32,64,128]
def parts(D,p):
    h,kv,d,S,f=D['heads'],D['kv_heads'],D['d'],D['sms'],D['f']; us=2e3/f; dp=pad(d)
    eta=np.minimum(D['_eta'],D['tdp']*1e6/(D['_E']*np.where(D['mma'],1.,.43)*D['peak']))*p['etaa']
    R=eta*D['peak']/S                                        # flop/us/SM
    causal=D['kind']!='encoder'
    # prefill
    nb,s,past=D['nb'],D['q'],D['pst']; bq=np.where(D['fa2'],QT2,QT3)
    el=4*dp/R+p['ex']/(16*f)                                 # us per score and SM
    gp=np.where(D['cc']==90,h/kv,1.); nq=np.ceil(s*gp/bq); bw=np.minimum(bq,np.maximum(1,s)) if False else bq
    kvlen=past+s
    hh=h/gp
    if causal: tot=nq*(past+np.minimum(s,bq/gp*(nq+1)/2)); longest=kvlen       # keys seen, summed over q tiles
    else: tot=nq*s; longest=s
    nblk=nb*hh*nq; kt=128.
    work=nb*hh*(tot+nq*kt/2)*bq*el+nblk*p['lama']*us          # SM us
    lon=np.where(s>0,np.ceil(longest/kt)*kt*bq*el+p['lama']*us,0)
    x=np.maximum(nblk/S,1e-9)
    if causal: tcp=np.maximum(work/S,lon)+np.where(nblk>S,QB,0.)*lon
    else: tcp=np.where(x<=1,1,(1-QA)*x+QA*np.ceil(x))*lon
    tcp=np.where(s>0,tcp,0.)
    # decode
    b,L=D['dec'],D['len']; rate=p['bd']*f                     # bytes/us/SM
    pack=(h>kv)|~D['fa2']
    units=b*np.where(pack,kv*np.ceil(h/kv/ 64),h); per=L*4*d
    def one(sp,ok):
        xx=units*sp/S; w=np.where(xx<=1,1,xx); o=2. if WC else 1.; xo=xx/o; wl=np.where(xo<=1,1,xo)
        return np.where(ok,w*(np.ceil(L/sp/64)*64*4*d/rate)+wl*p['lama']*us+np.where(sp>1,p['sigd']*us,0),np.inf)
    nkb=np.ceil(L/KB); sf=np.clip(np.floor(FILL*S/np.maximum(units,1)),1,np.maximum(1,nkb)); sf=np.minimum(sf,128)
    forced=np.where(pack,1,0)*np.where(D['fa2'],FORCE2,FORCE3)>0
    fs=np.where((units<.8*FILL*S)&pack,sf,1.); tf=one(fs,True)
    best=one(1.,True)
    for sp in SPLITS[1:]: best=np.minimum(best,one(float(sp),pack&(L>=128*sp)&(units*sp<=4*S)))
    best=np.where(forced,tf,best)
    tcd=np.where(b>0,best,0.)
    if D['kind']=='mixed':                                   # a varlen FA2 call: every decode is a q tile of one row, neither packed nor split
        mx=(b>0)&(nb>0); kb=np.ceil(L/kt)*kt
        w2=np.where(nb>0,work,0.)+b*h*(kb*bq*el+p['lama']*us); l2=np.maximum(np.where(nb>0,lon,0.),kb*bq*el+p['lama']*us); n2=nb*h*nq+b*h
        tmx=np.maximum(w2/S,l2)+np.where(n2>S,QB,0.)*l2; tcp=np.where(mx,tmx,tcp); tcd=np.where(mx,0.,tcd)
    tc=tcp+tcd
    KV=4*d*kv*(nb*kvlen+b*L); QO=4*d*h*(nb*s+b)
    tok=nb*s+b; app=4*d*kv*tok*(2 if causal else 0)
    cap=D['_cap']*D['l2']*CAPA; bl2=gemm.KL*D['l2b']*f; bd=D['_e']*D['bw']
    ms=gemm.miss(KV+QO,cap); X=KV+QO+(0 if APP else app); ta_=app*(ms/bd+(1-ms)/bl2)+tok/S*p['row']*us if causal and APP else 0.
    tm=X*(ms/bd+(1-ms)/bl2); tm=tm+p['mua']*tm/(tm+np.where(D['kind']=='decode',MS,D['_mu']))
    return tc,tm,us,ta_
def predict(D,p):
    tc,tm,us,ta_=parts(D,p)
    return p['ta']*us+ta_+(np.cbrt(tc**3+tm**3) if D['kind']!='decode' or PD==3 else (tc**PD+tm**PD)**(1/PD))
QT2=64.;QT3=128.;CAPA=1.2;MS=.3;PD=3;WC=0;QA=1.;QB=.3;APP=True;FORCE2=1;FORCE3=0;KB=128.;FILL=2.
SPECS=dict(
 prefill=[('ta',9.,2,30,.3,.2),('etaa',.75,.3,1.3,.3,.12),('ex',.6,.01,3,.7,.3),('lama',.8,.05,5,.7,.3),('bd',25.,5,100,0,0),('sigd',3.,.2,20,0,0),('row',.3,.01,3,.7,.2),('mua',2.2,.2,20,0,0)],
 encoder=[('ta',7.,2,30,.3,.2),('etaa',.75,.3,1.3,.3,.12),('ex',.6,.01,3,.7,.3),('lama',.8,.05,5,.7,.3),('bd',25.,5,100,0,0),('sigd',3.,.2,20,0,0),('row',.3,.01,3,.7,.2),('mua',2.2,.2,20,0,0)],
 decode=[('ta',9.,2,30,.3,.2),('etaa',.75,.3,1.3,0,0),('ex',.6,.01,3,0,0),('lama',.8,.05,5,.7,.3),('bd',25.,3,150,.7,.3),('sigd',3.,.2,20,.7,.3),('row',.3,.01,3,0,0),('mua',3.,.2,20,.7,.2)])
SPECS['mixed']=[(n,a,b,c,.5,0) for n,a,b,c,_,_ in SPECS['prefill']]
def main(kind,specs=None,modes='ab',nfit=350):
    g=rows(kind); D=prep(g,kind); y=g.us.values; card=g.card.values; gi=gemm.gens_of(card); h=gemm.hold_of(g); M=fit.Model(specs or SPECS[kind])
    print('##',kind); r,_=fit.evaluate(M,predict,D,y,gi,card,h,nfit=nfit,modes=modes)
    th=fit.fit(M,predict,D,y,gi,20); up=M.unpack(th); print({n:v[np.unique(gi)].round(2).tolist() for n,v in up.items()},[GENS[j] for j in np.unique(gi)])
    return g,D,y,card,gi,M,th,r
def res(kind,g,D,y,card,gi,M,th,r):
    p=predict(D,fit.rowparams(M,th,gi)); rr=np.log(p/y)
    for c in dict.fromkeys(card):
        k=card==c; x=pd.DataFrame(dict(r=rr[k],a=abs(rr[k]))); gg=g[k].reset_index(drop=True)
        cols=dict(decode=[('len',[0,64,256,1024,4096,16384,1e9]),('dec',[0,1,4,16,64,256,1e9]),('d',[0,64,128,192,256,512])],prefill=[('q',[0,32,128,512,2048,8192,1e9]),('nb',[0,1,4,16,64,256]),('d',[0,64,128,192,256,512])],
          encoder=[('q',[0,32,128,512,2048,8192,1e9]),('nb',[0,1,4,16,64,256]),('d',[0,64,72,80])],mixed=[('q',[0,32,128,512,1e9]),('dec',[0,1,4,16,64,1e9]),('pst',[-1,0,256,2048,1e9]),('len',[0,64,512,4096,1e9])])[kind]
        print(c,*[(a,(x.groupby(pd.cut(gg[a],b),observed=True)[['r','a']].mean()*100).round(0).astype(int).values.tolist()) for a,b in cols],'mha',(x.groupby(gg.heads==gg.kv_heads)[['r','a']].mean()*100).round(0).astype(int).values.tolist())
if __name__=='__main__':
    out={}; rng=np.random.default_rng(3); ref=[]
    for kind in ('prefill','decode','encoder','mixed'):
        g,D,y,card,gi,M,th,r=main(kind,modes='a' if kind=='mixed' else 'ab'); up=M.unpack(th); pars={GENS[j]:{n:float(up[n][j]) for n in M.names} for j in np.unique(gi)}; pars['shared']={n:float(np.exp(th[a])) for a,n in enumerate(M.names)}
        for q in pars.values():
            for x in M.specs: q[x[0]]=min(max(q[x[0]],x[2]),x[3])
        out[kind]=dict(params=pars,errors={k:{c:list(map(float,x)) for c,x in v.items()} for k,v in r.items()})
        p=predict(D,fit.rowparams(M,th,gi)); j=rng.permutation(len(g))[:300]; x=g.iloc[j][['gpu','card','op','shape','nb','q','pst','dec','len','heads','kv_heads','d','library','kernel','us']].copy(); x['predicted_us']=p[j]; ref.append(x)
    json.dump(out,open('attn.json','w'),indent=1); pd.concat(ref).to_csv('attn_reference.csv',index=False)
