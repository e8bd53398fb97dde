# datasheet facts. rate: B200 dense; l2bw = L2 read bytes/clk whole card (assumption: see MODEL.md)
import numpy as np
MiB=2**20
CARDS={
# name: gen, sms, f GHz (boost), bf16 dense TFLOP/s (fp32 accumulate), fp8, fp4, DRAM GB/s, TDP W, L2 MiB, L2B bytes/clk
'A100':dict(gen='ampere',cc=80,sms=108,f=1.410,bf16=312.,fp8=None,fp4=None,bw=2039.,tdp=400.,l2=40.,l2b=5120.),
'A40': dict(gen='ampere',cc=86,sms=84,f=1.740,bf16=149.7,fp8=None,fp4=None,bw=696.,tdp=300.,l2=6.,l2b=3072.,ecc=1),
'L40S':dict(gen='ada',cc=89,sms=142,f=2.520,bf16=362.,fp8=733.,fp4=None,bw=864.,tdp=350.,l2=96.,l2b=3072.,ecc=1),
'4090':dict(gen='ada',cc=89,sms=128,f=2.520,bf16=165.2,fp8=330.3,fp4=None,bw=1008.,tdp=450.,l2=72.,l2b=2304.,fs=2.70/2.52),
'H100':dict(gen='hopper',cc=90,sms=132,f=1.980,bf16=989.,fp8=1979.,fp4=None,bw=3352.,tdp=700.,l2=50.,l2b=5120.),
'B200':dict(gen='blackwell',cc=100,sms=148,f=1.965,bf16=2250.,fp8=4500.,fp4=9000.,bw=8000.,tdp=1000.,l2=126.,l2b=10240.),
'RTXP':dict(gen='rtxblackwell',cc=120,sms=188,f=2.430,bf16=467.8,fp8=935.6,fp4=1871.,bw=1597.,tdp=600.,l2=128.,l2b=4096.),
}
GENS=['ampere','ada','hopper','blackwell','rtxblackwell']
