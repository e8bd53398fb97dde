"""Quantised GEMM = quantiser kernel + GEMM with bf16 values frozen. predict(D,p)"""
import numpy as np,pandas as pd,json,sys,gemm,fit; from cards import *
NAMES=['t0','lam','eps','sig','mu','kappa','e','cap','eta','E','q','old']
BF=json.load(open('gemm.json'))['params']
FMT={'fp8':('fp8',1.,1.),'fp8_block':('fp8',1.,1.+4/128),'nvfp4':('fp4',.5625,.5625)}
SPLITOK=False; TM={'fp8':(16,64),'fp8_block':(64,64),'nvfp4':(64,128)}
def rows(prec):
    d=pd.read_pickle('d.pkl'); g=d[(d.op=='gemm')&(d.precision==prec)].reset_index(drop=True).copy(); g['copies']=g.weights; return g
def prep(g,prec):
    dt,bx,_=FMT[prec]; D=gemm.prep(g,dt,bx,bx,2.,tmin=TM[prec][0],split=SPLITOK,epj=.5); D['tminn']=TM[prec][1]
    gens=[CARDS[c]['gen'] for c in g.card]
    if prec=='fp8_block': D['tminn']=np.where(D['umma'],128,64)
    D['split']=D['mma']&(prec=='fp8')
    D['ecc']=g.card.isin(['A40','L40S']).values; D['prec']=prec
    for n in NAMES: D['_'+n]=np.array([BF[x][n] for x in gens])
    D['noq']=np.zeros(len(g)); return D
def predict(D,p):
    P={n:D['_'+n] for n in NAMES}
    P['eta']=P['eta']*p['etaq']; P['eps']=P['eps']*p['epsq']; P['E']=P['E']*p['eq']; P['lam']=P['lam']*p['lamq']
    m,k=D['m'],D['k']
    tc=gemm.tcompute(D,P); C=m*D['n']*2.; tm=gemm.tmemory(D,P,m*k*D['bx'],D['n']*k*D['bwt'],C*np.where(D['ecc']&(D['prec']=='fp8'),p['wr'],1.),D['copies']); body=np.cbrt(tc**3+tm**3)
    bytes_=m*k*(2*p['pas']+D['bx']); cap=P['cap']*D['l2']; ms=gemm.miss(m*k*(2+D['bx']),cap)
    tb=bytes_*(ms/(P['e']*D['bw'])+(1-ms)/(gemm.KL*D['l2b']*D['f']))
    tr=(k+p['k0'])/(p['v']*D['f'])*np.maximum(1,m/D['sms'])
    return P['t0']*2e3/D['f']+p['tq']*2e3/D['f']+np.maximum(tr,tb)+body
K0={'fp8':2700.,'fp8_block':500.,'nvfp4':500.}
def spec(prec,lq=(.5,0,0),eq=(.9,0,0)):
    return [('tq',2.5,.3,20,.7,.2),('v',dict(fp8=1.6).get(prec,5.),.2,60,1,.5),('etaq',.85,.2,1.2,.3,.1),('epsq',2.5,.2,15,.7,.4),('eq',eq[0],.3,3,*eq[1:]),('lamq',lq[0],.02,10,*lq[1:]),('pas',2.,1,6,0,0),('k0',K0[prec],10,20000,0,0),('wr',1.,1,6,0,0)]
SPECS=dict(fp8=spec('fp8'),fp8_block=spec('fp8_block',(.7,.7,0),(.9,.3,.3)),nvfp4=spec('nvfp4',(.08,0,0),(.73,0,0)))
SPECS['fp8_block']=[(n,a,b,c,d,{'etaq':.25,'v':.7,'epsq':.6}.get(n,e)) for n,a,b,c,d,e in SPECS['fp8_block']]
def main(prec,specs=None,modes='ab',show=True,save=False):
    g=rows(prec); D=prep(g,prec); y=g.us.values; card=g.card.values; gi=gemm.gens_of(card); h=gemm.hold_of(g); M=fit.Model(specs or SPECS[prec])
    print('##',prec); r,_=fit.evaluate(M,predict,D,y,gi,card,h,nfit=350,modes=modes)
    th=fit.fit(M,predict,D,y,gi,20); up=M.unpack(th); print({n:v[np.unique(gi)].round(2).tolist() for n,v in up.items()})
    return g,D,y,card,gi,M,th,r
if __name__=='__main__':
    if 'try' in sys.argv:
        for prec in FMT:
            main(prec,spec(prec,(.5,.7,.2),(.9,.3,.1)))
            main(prec,spec(prec,(.5,.7,0),(.9,.3,0)))
            main(prec,spec(prec))
        sys.exit()
    out={}; rng=np.random.default_rng(2); ref=[]
    for prec in FMT:
        g,D,y,card,gi,M,th,r=main(prec); up=M.unpack(th); pars={GENS[j]:{n:float(up[n][j]) for n in M.names} for j in np.unique(gi)}; pars['shared']={n:float(np.exp(th[a])) for a,n in enumerate(M.names)}
        for q in pars.values():
            for x in M.specs: q[x[0]]=min(max(q[x[0]],x[2]),x[3])
        out[prec]=dict(params=pars,errors={k:{c:list(map(float,x)) for c,x in v.items()} for k,v in r.items()})
        p=predict(D,fit.rowparams(M,th,gi)); j=rng.permutation(len(g))[:300]; x=g.iloc[j][['gpu','card','precision','m','n','k','copies','library','kernel','us']].copy(); x['predicted_us']=p[j]; ref.append(x)
    json.dump(out,open('quant.json','w'),indent=1); pd.concat(ref).to_csv('quant_reference.csv',index=False)
