"""Mixture of experts: two grouped GEMMs (up+gate: 2 inter x hidden; down: hidden x inter), GEMM's bf16 values frozen."""
import numpy as np,pandas as pd,json,sys,gemm,fit; from cards import *
NAMES=['t0','lam','eps','sig','mu','kappa','e','cap','eta','E','q','old']
BF=json.load(open('gemm.json'))['params']
KER={'triton':'triton','cutlass':'cutlass','trtllm':'trtllm'}
def rows():
    d=pd.read_pickle('d.pkl'); g=d[d.op=='moe'].reset_index(drop=True).copy()
    g['kf']=np.where(g.kernel.str.contains('triton_'),'triton',np.where(g.kernel.str.contains('cutlass'),'cutlass','trtllm'))
    return g
def prep(g):
    D=gemm.facts(g.card); fp8=(g.precision=='fp8').values
    D['fp8']=fp8; pk=np.array([CARDS[c]['fp8'] or 0 for c in g.card])*1e6*np.array([CARDS[c].get('fs',1.) for c in g.card]); D['peak']=np.where(fp8,pk,D['peak']); D['epj']=np.where(fp8,.5,1.)
    for c in ('tokens','hidden','inter','topk','experts'): D[c]=g[c].values.astype(float)
    for n in NAMES: D['_'+n]=np.array([BF[CARDS[c]['gen']][n] for c in g.card])
    D['kf']=g.kf.values; D['b']=np.where(fp8,1.,2.); return D
def group(D,p,M,n,k,touched):
    """M rows in all over `touched` experts; each expert n x k"""
    S,f=D['sms'],D['f']; us=2e3/f; b=D['b']
    beta=D['_kappa']*D['l2b']*D['c']/S*f; eta=np.minimum(D['_eta'],D['tdp']*1e6/(D['_E']*np.where(D['mma'],1.,.43)*D['epj']*D['peak']))*p['etam']; rate=eta*D['peak']/S; bl2=gemm.KL*D['l2b']*f
    me=M/touched; best=np.full(len(n),np.inf)
    for bm,bn in TILES:
        r=np.minimum(bm,me); t=touched*np.ceil(me/bm*PADM)*np.ceil(n/bn) if PADM>1 else np.maximum(touched,touched*np.ceil(me/bm))*np.ceil(n/bn)
        tk=64*np.maximum(2*bm*bn/rate,(r+bn)*b/beta); fix=D['_lam']*us*p['lamm']+2*D['_eps']*r*bn/beta
        x=t/S; w=np.where(x<=1,1,(1-D['_q'])*x+D['_q']*np.ceil(x)); best=np.minimum(best,w*(fix+np.ceil(k/64)*tk))
    W=touched*n*k*b; A=M*k*b; C=M*n*2
    cap=D['_cap']*D['l2']; bd=D['_e']*D['bw']*p['em']; m1=1. if COLDW else gemm.miss(W+A+C,cap); m2=gemm.miss(A+C+np.minimum(W,cap),cap)
    tm=W*(m1/bd+(1-m1)/bl2)+(A+C)*(m2/bd+(1-m2)/bl2); tm=tm+D['_mu']*tm/(tm+D['_mu'])
    return np.cbrt(best**3+tm**3)
COLDW=False; PADM=1
TILES=[(16,64),(16,128),(64,64),(64,128),(128,128),(128,256)]
def predict(D,p):
    T,h,i,k,e=D['tokens'],D['hidden'],D['inter'],D['topk'],D['experts']; us=2e3/D['f']
    touched=e*(1-(1-k/e)**(T*p['sk'])); touched=np.maximum(touched,np.minimum(k,e)); M=T*k
    gt=np.where(np.isin(k,(6,22)),1,2); g1=group(D,p,M,gt*i,h,touched); g2=group(D,p,M,h,i,touched)
    by=M*(gt*i*2+i*2)+M*h*2*2+T*h*2*2                      # silu_mul, permute/reduce
    ms=gemm.miss(by,D['_cap']*D['l2']); tr=by*(ms/(D['_e']*D['bw'])+(1-ms)/(gemm.KL*D['l2b']*D['f']))*p['pasm']
    return p['tm']*us+g1+g2+tr
SPECS=[('tm',15.,3,80,.7,.3),('etam',.7,.2,1.2,.3,.2),('em',.9,.1,1.2,.2,.1),('lamm',1.,.1,20,.7,.3),('pasm',1.,.1,6,.7,.2),('sk',1.3,.8,3,.3,0)]
def main(mask=None,modes='ab',tag='',sp=SPECS,nfit=350):
    g=rows(); 
    if mask is not None: g=g[mask(g)].reset_index(drop=True)
    D=prep(g); y=g.us.values; card=g.card.values; gi=gemm.gens_of(card); h=gemm.hold_of(g); M=fit.Model(sp); print('##',tag,len(g))
    r,_=fit.evaluate(M,predict,D,y,gi,card,h,nfit=nfit,modes=modes); th=fit.fit(M,predict,D,y,gi,20); up=M.unpack(th); print({n:v[np.unique(gi)].round(2).tolist() for n,v in up.items()},[GENS[j] for j in np.unique(gi)])
    return g,D,y,card,gi,M,th,r
def res(g,D,y,card,gi,M,th,r):
    p=predict(D,fit.rowparams(M,th,gi)); rr=np.log(p/y)
    for key,gg in g.groupby(['card','precision','kf']):
        x=pd.DataFrame(dict(r=rr[gg.index],a=abs(rr[gg.index])))
        print(key,len(gg),'tokens',(x.groupby(pd.cut(gg.tokens.values,[0,4,16,64,256,1024,4096,1e9]),observed=True)[['r','a']].mean()*100).round(0).astype(int).values.tolist(),'inter',(x.groupby(pd.cut(gg.inter.values,[0,64,256,1024,1e9]),observed=True)[['r','a']].mean()*100).round(0).astype(int).values.tolist(),'experts',(x.groupby(pd.cut(gg.experts.values,[0,16,128,256,512]),observed=True)[['r','a']].mean()*100).round(0).astype(int).values.tolist(),'topk',(x.groupby(gg.topk.values)[['r','a']].mean()*100).round(0).astype(int).values.tolist())
if __name__=='__main__':
    reg=lambda g: ~((g.kf=='cutlass')&g.card.isin(['H100','B200'])); sp2=[list(x) for x in SPECS]; sp2[2][1]=.4; sp2[2][4]=.7; sp2[3][1]=50.; sp2[3][3]=9000
    out={}; ref=[]; rng=np.random.default_rng(4)
    for tag,mask,sp in (('regular',reg,SPECS),('cutlass_sm90',lambda g:(g.kf=='cutlass')&(g.card=='H100'),sp2)):
        R=main(mask,modes='ab' if tag=='regular' else 'a',tag=tag,sp=sp); res(*R); g,D,y,card,gi,M,th,r=R
        up=M.unpack(th); pars={GENS[j]:{n:float(np.clip(up[n][j],lo,hi)) for n,_,lo,hi,_,_ in M.specs} for j in np.unique(gi)}; pars['shared']={x[0]:float(np.clip(np.exp(th[a]),x[2],x[3])) for a,x in enumerate(M.specs)}
        out[tag]=dict(params=pars,errors={k:{c:list(map(float,x)) for c,x in v.items()} for k,v in r.items()})
        p=predict(D,fit.rowparams(M,th,gi)); 
        if tag=='regular': print('by precision',{k:round(float(np.mean(abs(p[v]/y[v]-1))*100),1) for k,v in g.groupby(['card','precision','kf']).indices.items()})
        j=rng.permutation(len(g))[:300]; x=g.iloc[j][['gpu','card','precision','tokens','hidden','inter','topk','experts','library','kernel','kf','us']].copy(); x['predicted_us']=p[j]; ref.append(x)
    json.dump(out,open('moe.json','w'),indent=1); pd.concat(ref).to_csv('moe_reference.csv',index=False)
