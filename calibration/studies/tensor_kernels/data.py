import os
FOLDER=os.environ['FTAX_MEASUREMENTS']
import pandas as pd, numpy as np, re
def load():
    t=pd.read_csv(FOLDER+'/tensor_ops.csv'); l=pd.read_csv(FOLDER+'/layer_ops.csv')
    l['weights']=np.nan; l['kernel']=''
    l['file']='layer'; t['file']='tensor'
    d=pd.concat([t,l],ignore_index=True)
    keys=d['shape'].str.findall(r'(\w+)=(\d+)')
    cols=sorted({k for ks in keys for k,_ in ks})
    for c in cols: d[c]=np.nan
    for c in cols:
        d[c]=d['shape'].str.extract(rf'(?:^| ){c}=(\d+)')[0].astype(float)
    d['us']=d.latency_ms*1e3
    d['card']=d.gpu.map({'a100-sxm4-80gb':'A100','a40':'A40','rtx-4090':'4090','l40s':'L40S','h100-sxm5-80gb':'H100','b200':'B200','rtx-pro-6000-blackwell-server':'RTXP'})
    return d
if __name__=='__main__':
    d=load(); d.to_pickle('d.pkl'); print(d.columns.tolist())
