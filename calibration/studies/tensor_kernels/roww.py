"""Row-wise kernels: t = t0r us + block work + traffic; GEMM's e, cap, mu frozen."""
import numpy as np,pandas as pd,json,sys,gemm,fit; from cards import *
BF=json.load(open('gemm.json'))['params']; OPS=['rms_norm','layer_norm','rope','silu_mul','gelu','embedding','add']
def rows():
    d=pd.read_pickle('d.pkl'); g=d[d.op.isin(OPS)].reset_index(drop=True).copy(); return g
def prep(g):
    D=gemm.facts(g.card); op=np.array(g.op.tolist(),dtype=object); D['op']=op; m=g.m.values; h=np.where(op=='rope',(g.heads+g.kv_heads)*g.d,g.h).astype(float)
    R={'rms_norm':(1,1),'layer_norm':(1,1),'rope':(1,1),'silu_mul':(2,1),'gelu':(1,1),'embedding':(0,1),'add':(2,1)}
    rd=np.array([R[o][0] for o in op]); wr=np.array([R[o][1] for o in op]); D['m'],D['h']=m,h; D['rd']=2*m*h*rd; D['wrb']=2*m*h*wr
    for n in ('e','cap','mu','t0'): D['_'+n]=np.array([BF[CARDS[c]['gen']][n] for c in g.card])
    D['lib']=(g.library=='sarathi').values; return D
def predict(D,p):
    op,m,S=D['op'],D['m'],D['sms']; us=2e3/D['f']; norm=np.isin(op,('rms_norm','layer_norm')); pw=np.isin(op,('add','gelu','embedding'))
    Y=D['rd']*np.where(norm,2.,1.)+D['wrb']                       # a norm reads its input twice
    X=D['rd']+D['wrb']; cap=D['_cap']*D['l2']*np.where(D['lib'],1.2,CAPN); ms=gemm.miss(X,cap)
    bl2=gemm.KL*D['l2b']*D['f']*p['kr']; bd=D['_e']*p['er']*D['bw']
    v=np.where(norm|(op=='gelu'),p['vn'],np.where(op=='rope',p['vr'],np.where(op=='silu_mul',p['vs'],p['vp'])))*D['f']*np.where(D['lib'],1.,p['new'])
    occ=np.where(pw,0.,p['occ'])
    tcx=Y/np.maximum(m,1)/v*np.maximum(occ,m/S); tm=Y*(ms/bd+(1-ms)/bl2)
    tm=tm+RM*D['_mu']*tm/(tm+D['_mu'])
    return p['tr']*us*np.where(norm&D['lib'],p['tn'],1.)+np.cbrt(tcx**3+tm**3)
CAPN=.7;NSD=.7;RM=0.
SPECS=[('tr',2.2,.3,10,.5,.1),('er',1.03,.4,1.3,.03,.03),('kr',1.5,.1,5,.3,.1),('vn',7.,1,60,.7,0),('vr',6.,1,60,.7,0),('vs',7.,1,60,.7,0),('vp',9.,1,90,.7,0),('occ',2.,.2,20,.7,0),('tn',1.6,.5,5,.4,0),('new',1.,.3,8,NSD,0)]
def main(modes='abc',sp=SPECS):
    g=rows(); D=prep(g); y=g.us.values; card=g.card.values; gi=gemm.gens_of(card); h=gemm.hold_of(g); M=fit.Model(sp)
    rr_=0.5/np.maximum(y,1)
    r,_=fit.evaluate(M,predict,D,y,gi,card,h,nfit=500,modes=modes); th=fit.fit(M,predict,D,y,gi,20); up=M.unpack(th); print({n:v[np.unique(gi)].round(3).tolist() for n,v in up.items()},[GENS[j] for j in np.unique(gi)])
    p=predict(D,fit.rowparams(M,th,gi)); x=np.log(p/y)
    for k,v in g.groupby(['op','card']).indices.items():
        q=g.iloc[v]; z=pd.DataFrame(dict(r=x[v],a=abs(x[v]))); print(k,len(v),'%.1f %+.1f'%(100*z.a.mean(),100*z.r.mean()),(z.groupby(pd.cut(q.us.values,[0,4,8,16,32,64,256,1e9]),observed=True)[['r','a']].mean()*100).round(0).astype(int).values.tolist())
    return g,D,y,card,gi,M,th,r
if __name__=='__main__':
    import sys
    if len(sys.argv)>1:
        for CAPN in (.6,.8,): print(CAPN); main('a') if False else main('ab')
        sys.exit()
    g,D,y,card,gi,M,th,r=main(); up=M.unpack(th); rng=np.random.default_rng(5); p=predict(D,fit.rowparams(M,th,gi))
    pars={GENS[j]:{n:float(np.clip(up[n][j],lo,hi)) for n,_,lo,hi,_,_ in M.specs} for j in np.unique(gi)}; pars['shared']={x[0]:float(np.clip(np.exp(th[a]),x[2],x[3])) for a,x in enumerate(M.specs)}
    json.dump(dict(params=pars,errors={k:{c:list(map(float,x)) for c,x in v.items()} for k,v in r.items()}),open('roww.json','w'),indent=1)
    j=rng.permutation(len(g))[:300]; x=g.iloc[j][['gpu','card','op','shape','library','us']].copy(); x['predicted_us']=p[j]; x.to_csv('roww_reference.csv',index=False)
